"""What is wrong with the records of an offsets topic."""
