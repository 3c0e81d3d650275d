"""Values that are kept as JSON in files, and read back into typed classes; pure."""
