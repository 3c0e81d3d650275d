"""Facts with an age: what the exporter and `watch` show, each source looked at by itself, again and again."""
