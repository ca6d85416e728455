"""Mechanisms that explore and then commit, block by block: the cost does not depend on the horizon."""

from cloneproof.engines.monte_carlo.blocks.engine import block_outcomes, blocks_apply

__all__ = ["block_outcomes", "blocks_apply"]
