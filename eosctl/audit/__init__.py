"""`audit`: proves from the log whether a connector was exactly-once."""
