"""One file per source: what is asked of the cluster, by the same functions that doctor and the other commands call."""
