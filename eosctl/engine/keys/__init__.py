"""Keys of offsets, a column at a time: their connectors, their partitions, and their rows in another table."""
