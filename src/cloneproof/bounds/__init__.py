"""Every bound of the paper and ours, as pure functions of numbers: how sure, how long, how much regret.

Nothing here looks at a market or a mechanism. L is the largest number of originals of an agent, l the number of arms
that one ETC compares, m its rounds for each arm, M an agent's trial, W the fresh rewards of a hold-out score, K the
arms that such a score allows, n the agents, T the horizon. `spread` is the rewards' sub-Gaussian standard deviation:
1/2 for anything in [0, 1], sd for Gaussian rewards. A docstring says whose statement it is, under which assumption,
and whether its constant is proven (and where) or whether only the shape is known.
"""

from cloneproof.bounds.applicability import holdout_applies, trp_applies
from cloneproof.bounds.epochs import doubling_arm_rounds, doubling_ends, doubling_epoch, doubling_length
from cloneproof.bounds.incentives import covered_gap, holdout_gain
from cloneproof.bounds.pairs import (
    log_overtaken_pair,
    pairs_apply,
    pairs_arm_rounds,
    pairs_regret,
    pairs_score_rounds,
)
from cloneproof.bounds.regret import etc_regret, etc_regret_paper, prior_independent_etc_regret, ucb1_regret
from cloneproof.bounds.regret_hierarchical import (
    h_etc_r_regret,
    h_etc_r_regret_paper,
    h_etc_r_shape,
    uniform_etc_regret,
    uniform_etc_regret_at_least,
)
from cloneproof.bounds.regret_holdout import (
    holdout_epochs_regret,
    holdout_regret,
    holdout_regret_simple,
    wrong_agent,
)
from cloneproof.bounds.rounds import etc_rounds, trial_rounds, trp_arm_rounds
from cloneproof.bounds.rounds_holdout import (
    arm_rounds_without_gap,
    holdout_arm_rounds,
    holdout_award_horizon,
    holdout_rounds,
    holdout_score_rounds,
    holdout_trial,
)
from cloneproof.bounds.searches import first_horizon_with_award, smallest
from cloneproof.bounds.tails import (
    log_mistake,
    mistake,
    mistake_paper,
    overtaken,
    psi,
    tail_lower_paper,
    tail_upper_paper,
)

__all__ = [
    "arm_rounds_without_gap", "covered_gap", "doubling_arm_rounds", "doubling_ends", "doubling_epoch",
    "doubling_length", "etc_regret", "etc_regret_paper", "etc_rounds", "first_horizon_with_award", "h_etc_r_regret",
    "h_etc_r_regret_paper", "h_etc_r_shape", "holdout_applies", "holdout_arm_rounds", "holdout_award_horizon",
    "holdout_epochs_regret", "holdout_gain", "holdout_regret", "holdout_regret_simple", "holdout_rounds",
    "holdout_score_rounds", "holdout_trial", "log_mistake", "log_overtaken_pair", "mistake", "mistake_paper",
    "overtaken", "pairs_apply", "pairs_arm_rounds", "pairs_regret", "pairs_score_rounds",
    "prior_independent_etc_regret", "psi", "smallest", "tail_lower_paper", "tail_upper_paper", "trial_rounds",
    "trp_applies", "trp_arm_rounds", "ucb1_regret", "uniform_etc_regret", "uniform_etc_regret_at_least",
    "wrong_agent",
]  # fmt: skip
