"""The state tree: every mechanism made of rules, Bernoulli and deterministic rewards, every horizon in one pass."""

from cloneproof.engines.tree.engine import tree
from cloneproof.engines.tree.work_limit import tree_time

__all__ = ["tree", "tree_time"]
