"""From Kafka to columns: what lies in record batches, ranges of offsets, the newest of each key."""
