"""Facts with an age, for the exporter and `watch`: each source is looked at by itself, again and again."""
