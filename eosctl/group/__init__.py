"""The Connect group: its members, workers and modes, and who runs what."""
