"""`offsets set` and `offsets reset`."""
