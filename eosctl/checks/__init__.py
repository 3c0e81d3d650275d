"""doctor, connectors check, metrics: what is wrong with a group."""
