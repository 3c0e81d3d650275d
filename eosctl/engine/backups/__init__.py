"""Backups as columns: their records, the files that keep them, and restoring them."""
