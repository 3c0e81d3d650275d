"""`offsets switch`: a connector changes its offsets topic."""
