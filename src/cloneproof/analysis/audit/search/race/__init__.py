"""Best response by sampling: search, then confirm (`race.api`)."""
