"""Bandits: a rule that ranks, on one level or two."""
