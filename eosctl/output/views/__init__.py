"""Which columns each kind of report shows as text."""
