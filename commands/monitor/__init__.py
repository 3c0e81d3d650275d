"""`eosctl exporter` and what else is left running to see how a group is."""
