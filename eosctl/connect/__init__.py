"""I/O with Kafka Connect workers over REST."""
