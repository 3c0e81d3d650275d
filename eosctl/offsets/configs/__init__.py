"""What the config of a connector, or a change of it, means for its source partitions and their offsets."""
