"""From Kafka to columns: the content of record batches, ranges of offsets, the newest record of each key."""
