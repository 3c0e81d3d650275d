"""What is wrong with connectors, by their configs and records; pure."""
