"""Source offsets: list, compare and write them."""
