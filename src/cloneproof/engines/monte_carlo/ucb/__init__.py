"""Compiled UCB: ucb1, s-ucb, rand-ucb, h-ucb and rh-ucb, decision by decision those of the reference simulator."""

from cloneproof.engines.monte_carlo.ucb.engine import ucb_applies, ucb_outcomes

__all__ = ["ucb_applies", "ucb_outcomes"]
