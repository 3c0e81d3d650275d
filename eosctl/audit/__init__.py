"""`audit`: whether a connector was exactly-once, proven from the log."""
