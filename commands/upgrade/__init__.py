"""`eosctl upgrade`."""
