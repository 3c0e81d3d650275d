"""`eosctl sandbox`, `eosctl demo` and `eosctl rehearse`."""
