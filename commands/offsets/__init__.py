"""`eosctl offsets`."""
