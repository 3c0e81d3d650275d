"""Fencing producers by transactional id."""
