"""The frame of every command: the root, its options, the session and the question."""
