"""A mechanism while it runs: levels, the state of all of them, the session and its file."""
