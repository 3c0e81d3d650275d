"""A group and its connectors as seen at one look; pure."""
