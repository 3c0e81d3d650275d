"""Records on their way through Spark: read, decided, written."""
