"""`doctor`, `connectors check` and `metrics`: the faults of a group."""
