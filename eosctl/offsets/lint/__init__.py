"""Findings about the records of an offsets topic."""
