"""A group and its connectors as observed at one time. Pure."""
