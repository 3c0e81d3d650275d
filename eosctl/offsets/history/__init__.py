"""What the records of an offsets topic show of the past."""
