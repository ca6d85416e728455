"""One market: its engine, registry, wait windows, snapshots and replay."""
