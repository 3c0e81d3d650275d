"""The global and the dedicated offsets topics as they are now."""
