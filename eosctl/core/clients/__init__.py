"""Settings of Kafka clients as Java writes them, read into our own; pure."""
