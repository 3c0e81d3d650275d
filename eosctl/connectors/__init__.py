"""Single connectors: their state, their offsets topics, and how they are stopped and started."""
