"""`eosctl explain` and `eosctl schema`: the meaning of codes, words and documents."""
