"""Settings of Connect workers, and the way to them; pure."""
