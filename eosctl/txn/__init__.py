"""Transactions of everybody: list, describe, abort, hanging ones and the log."""
