"""The entries of the dictionary, a file per family; `table.py` puts them in order."""
