"""Readers of a group's config topic and status topic."""
