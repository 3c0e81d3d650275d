"""The batches of partitions, fetched from their leaders by eosctl's own wire."""
