"""The config topic of a Connect group: its records, folded as Connect folds them; pure."""
