"""What the paper's statements need in addition to an audit.

Instances and their random permutations (section 4), the regret averaged over permutations, the properties TRP and PI
that its theorems rest on, and one evaluation for each of many horizons.

>>> import cloneproof as cp
>>> instance = cp.paper.Instance((1.0, 0.0), (2, 1))
>>> cp.paper.rp_regret(cp.mechanism("ucb1"), instance, horizon=7).value
1.5
"""

from cloneproof.evaluation.evaluate import evaluate_horizons
from cloneproof.paper.permutations import Instance, check_permutation_invariance, check_trp, rp_regret

__all__ = ["Instance", "check_permutation_invariance", "check_trp", "evaluate_horizons", "rp_regret"]
