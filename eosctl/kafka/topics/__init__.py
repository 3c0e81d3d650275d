"""Topics: read, written and created by confluent-kafka."""
