"""The entries of the dictionary, a file per family; `rules.py` puts them in order."""
