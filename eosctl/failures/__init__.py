"""The dictionary of failures: the meaning of stack traces and log lines of Connect, Streams, Flink and producers."""
