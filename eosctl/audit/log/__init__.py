"""What passes by when logs are read for an audit, and what is kept of it. Pure: no I/O."""
