"""`eosctl connectors`."""
