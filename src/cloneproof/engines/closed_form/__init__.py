"""Exact payoffs of everything that explores and then commits, by its structure instead of by simulation.

Reading order: `structure` (what is covered), `commitment` and `ties` (who is committed to), `rounds` (how many rounds
each arm expects), `realisations`, `rewards`, `plans` and `trial` (an agent's score), `contest` (who wins the award),
`expectation` (all of it together) and `engine` (estimates with their errors).
"""

from cloneproof.engines.closed_form.engine import closed_form

__all__ = ["closed_form"]
