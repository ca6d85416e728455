"""Dominance: honesty against every set of opponents, for two-phase mechanisms."""
