"""`connectors create` and `apply`: a connector on one cluster, with its offsets in place."""
