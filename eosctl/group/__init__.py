"""The Connect group: its members, workers and modes, and the work that they run."""
