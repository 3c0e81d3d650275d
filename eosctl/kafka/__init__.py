"""I/O with Kafka: native connections for eosctl.wire, confluent-kafka for topics."""
