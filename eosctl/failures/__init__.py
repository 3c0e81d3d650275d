"""The dictionary of failures: what a stack trace or a log line means, for Connect, Streams, Flink and plain "
"producers."""
