"""`eosctl exporter` and other commands that are left running to watch a group."""
