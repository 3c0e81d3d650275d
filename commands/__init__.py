"""The click layer, installed as eosctl.commands; one file per command group."""
