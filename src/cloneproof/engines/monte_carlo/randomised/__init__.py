"""Thompson sampling and epsilon-greedy over all arms with Bernoulli rewards, each in a kernel of its own."""

from cloneproof.engines.monte_carlo.randomised.engine import randomised_applies, randomised_outcomes

__all__ = ["randomised_applies", "randomised_outcomes"]
