"""A screen of its own in a terminal: rows of styled text, painted where they changed, and keys that are pressed."""
