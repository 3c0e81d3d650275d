"""What the records of an offsets topic tell of the past."""
