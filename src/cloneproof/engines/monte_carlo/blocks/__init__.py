"""Mechanisms that explore and then commit, block by block: the cost does not depend on the horizon."""
