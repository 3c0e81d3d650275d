"""What is wrong with a group as a whole; pure."""
