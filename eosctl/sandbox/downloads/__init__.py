"""The jars that the sandbox runs."""
