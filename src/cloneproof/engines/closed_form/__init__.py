"""Exact payoffs of everything that explores and then commits, by its structure instead of by simulation."""
