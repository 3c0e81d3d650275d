"""Transactions of all applications: list, describe, abort, hanging ones and the log."""
