"""Scores, one in each file: which rewards of an agent count when agents are compared."""
