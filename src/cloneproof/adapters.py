"""Bandits of other packages as black boxes, each an optional extra: `pip install 'cloneproof[river]'`."""

from cloneproof.engines.black_box.mabwiser import mabwiser
from cloneproof.engines.black_box.river import river

__all__ = ["mabwiser", "river"]
