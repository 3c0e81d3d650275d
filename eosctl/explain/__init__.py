"""`eosctl explain` and `eosctl schema`: what codes, words and documents mean."""
