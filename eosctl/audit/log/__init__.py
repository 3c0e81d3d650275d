"""The state that an audit keeps while it reads logs. Pure: no I/O."""
