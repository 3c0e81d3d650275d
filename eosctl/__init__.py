"""eosctl: operations toolkit for exactly-once Kafka Connect sources (KIP-618)."""
