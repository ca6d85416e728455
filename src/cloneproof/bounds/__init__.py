"""All bounds, the paper's and ours, as pure functions of numbers: probabilities, rounds, regret.

Each docstring names the statement, its assumptions, and whether the constant is proven or only the shape is known.
The arguments mean the same everywhere::

    agents         n, the number of agents
    originals      L, the largest number of originals of an agent; l, the arms that one ETC compares
    max_arms       K, the arms up to which an agent has a score; as many as originals if left out
    horizon        T, the number of rounds
    arm_rounds     m, the rounds that an ETC explores each arm for
    agent_rounds   M, the trial of an agent
    score_rounds   W, the fresh rewards that a hold-out score counts
    rounds         m of each of two arms that are compared
    gap            the smallest distance of two different means of an agent; infinite if all are equal
    agent_gap      the smallest distance of different best means of two agents; None if unknown
    gap_known      whether the platform knows the gap; else it explores for (ln T')^3 rounds
    gaps           the distance of each arm's mean from the best one
    means          of arms, in [0, 1]; of each agent's originals if there are several agents
    values         the means in [0, 1] that originals can have
    low, high      two means, u < v, in [0, 1]
    threshold      y, the average that is to be reached
    spread         the rewards' sub-Gaussian standard deviation: 1/2 for anything in [0, 1], sd for Gaussian rewards
    tail           which bound: "exact" for Bernoulli rewards, "chernoff" for any in [0, 1], "sub-gaussian" for all
    factor, power  constants of a formula
    epoch, round_  i, the number of a doubling epoch, and a round, both from 1
    draws          s, the slots of an agent
    constant       c, of an index
    weights        the chances of the values, as proportions; equal if left out
    accounts       m, the accounts of one provider
    pot            V, what accounts share alike
    regret         R, a bound on the expected regret
    density        f, the most that the density of a prior is
    length         H, the rounds of a season
    lifetime       D, the rounds after which a rate is drawn anew, on average
    holds, trial   functions of a whole number: a property that stays true, and the rounds of all trials at a horizon
"""

from cloneproof.bounds.accounts import (
    account_fee,
    accounts_gain,
    flood_others,
    second_account_ceiling,
    second_account_floor,
)
from cloneproof.bounds.index import index_gain_ceiling
from cloneproof.bounds.pairs import (
    log_overtaken_pair,
    pairs_apply,
    pairs_arm_rounds,
    pairs_regret,
    pairs_score_rounds,
)
from cloneproof.bounds.regret import (
    etc_regret,
    etc_regret_paper,
    h_etc_r_regret,
    h_etc_r_regret_paper,
    h_etc_r_shape,
    holdout_epochs_regret,
    holdout_regret,
    holdout_regret_simple,
    prior_independent_etc_regret,
    ucb1_regret,
    uniform_etc_regret,
    uniform_etc_regret_at_least,
    wrong_agent,
)
from cloneproof.bounds.rounds import (
    arm_rounds_without_gap,
    covered_gap,
    doubling_arm_rounds,
    doubling_ends,
    doubling_epoch,
    doubling_length,
    etc_rounds,
    first_horizon_with_award,
    holdout_applies,
    holdout_arm_rounds,
    holdout_award_horizon,
    holdout_gain,
    holdout_rounds,
    holdout_score_rounds,
    holdout_trial,
    smallest,
    trial_rounds,
    trp_applies,
    trp_arm_rounds,
)
from cloneproof.bounds.seasons import season_cost, season_length
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
    "account_fee", "accounts_gain", "arm_rounds_without_gap", "covered_gap", "doubling_arm_rounds", "doubling_ends",
    "doubling_epoch", "doubling_length", "etc_regret", "etc_regret_paper", "etc_rounds", "first_horizon_with_award",
    "flood_others", "h_etc_r_regret", "h_etc_r_regret_paper", "h_etc_r_shape", "holdout_applies",
    "holdout_arm_rounds", "holdout_award_horizon", "holdout_epochs_regret", "holdout_gain", "holdout_regret",
    "holdout_regret_simple", "holdout_rounds", "holdout_score_rounds", "holdout_trial",
    "index_gain_ceiling", "log_mistake",
    "log_overtaken_pair", "mistake", "mistake_paper", "overtaken", "pairs_apply", "pairs_arm_rounds",
    "pairs_regret", "pairs_score_rounds", "prior_independent_etc_regret", "psi", "season_cost", "season_length",
    "second_account_ceiling", "second_account_floor",
    "smallest", "tail_lower_paper", "tail_upper_paper", "trial_rounds", "trp_applies",
    "trp_arm_rounds", "ucb1_regret", "uniform_etc_regret", "uniform_etc_regret_at_least", "wrong_agent",
]  # fmt: skip
