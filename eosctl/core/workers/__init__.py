"""Settings of Connect workers, and how to reach them; pure."""
