"""`eosctl demo`: a story in six scenes on a fresh sandbox."""
