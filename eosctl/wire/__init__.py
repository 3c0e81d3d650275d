"""Pure codecs for the Kafka requests that no Python client offers."""
