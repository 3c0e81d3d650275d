"""Checks of a group as a whole; pure."""
