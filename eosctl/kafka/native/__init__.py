"""eosctl's own connections to brokers, for requests that librdkafka does not offer."""
