"""Connections of our own to brokers, for what no Python client offers."""
