"""One file per source: questions to the cluster, by the same functions that doctor and other commands call."""
