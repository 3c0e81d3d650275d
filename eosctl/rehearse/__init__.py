"""`eosctl rehearse`: takes a connector in a sandbox through the upgrade and through faults, and audits it."""
