"""Moves a connector from one Connect group to another, with its offsets: `eosctl connectors move`."""
