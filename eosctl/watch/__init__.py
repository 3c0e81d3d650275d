"""The operation `eosctl watch`: doctor's findings as they appear, change and go."""
