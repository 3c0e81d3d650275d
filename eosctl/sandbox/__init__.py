"""A real Kafka broker and real Connect workers on this machine, for tests and the demo."""
