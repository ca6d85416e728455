"""One market: the state machine, its registry, snapshots and replay."""
