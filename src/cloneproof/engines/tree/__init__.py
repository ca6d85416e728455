"""The state tree: every mechanism made of rules, Bernoulli and deterministic rewards, every horizon in one pass."""

from cloneproof.engines.tree.engine import tree

__all__ = ["tree"]
