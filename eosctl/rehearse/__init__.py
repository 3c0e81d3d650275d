"""`eosctl rehearse`: a connector in a sandbox, through the upgrade and through faults, and what an audit says of it."""
