"""What every command stands in: the root, its options, the session and the question."""
