"""Exact payoffs of mechanisms that explore and then commit, without simulation."""
