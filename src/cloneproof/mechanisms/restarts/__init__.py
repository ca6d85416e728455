"""Restarts, one in each file: when statistics are cleared, and what runs from then on."""
