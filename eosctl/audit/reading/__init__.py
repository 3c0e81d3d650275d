"""Reads the logs for an audit: finds windows, reads them, and looks again before anything counts as missing."""
