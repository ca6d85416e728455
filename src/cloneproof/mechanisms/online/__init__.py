"""A running mechanism: levels, their state, the session and its file."""
