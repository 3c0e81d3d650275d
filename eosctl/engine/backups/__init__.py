"""Backups as columns: of what they are made, the files that keep them, and what restoring them does."""
