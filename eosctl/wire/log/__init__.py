"""Reads a partition's log: its first and last offsets, its batches by their headers, and their records."""
