"""Task-count records: show, validate, write and clean them."""
