"""Keys of offsets, a column at a time: whose they are, where they belong, and where another table has them."""
