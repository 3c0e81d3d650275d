"""The config topic and the status topic of a group, read."""
