"""`eosctl watch`: what doctor finds, as it appears, changes and goes."""
