"""`offsets migrate`: plan, apply, resume, verify."""
