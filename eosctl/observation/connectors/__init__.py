"""The faults of connectors, judged by their configs and records. Pure."""
