"""The former offsets in the records of an offsets topic."""
