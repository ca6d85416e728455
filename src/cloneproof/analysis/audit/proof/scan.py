"""The scan theorem as an argument for one case: no copies and no withholding pay (docs/textbook/reservoir.md).

It covers rules that touch an agent's arms only through uniform draws with replacement and test them on coins: first
pass and best of draws, flat or followed by a contest of champions on fresh rewards. Counts of coins are binomial, so
the conditions are comparisons of odds (`scan_conditions.violated_odds`), whatever the number of pulls. Sums of n
Gaussian rewards of one standard deviation sd are N(n v, n sd^2), whose likelihood ratio for means v < w is the
exponential of (w - v) / sd^2 times the score and a constant: it rises with the score, which is the same condition for
scores without atoms (docs/textbook/reservoir.md, section 5). Means are at least 0, as the theorem asks of what is paid.
The proof is ours and has not been reviewed by others.
"""

from __future__ import annotations

from fractions import Fraction

from cloneproof.analysis.audit.cases import AuditCase, epoch_cases
from cloneproof.analysis.audit.proof.scan_conditions import violated_odds
from cloneproof.analysis.audit.proof.theorems import same_prior
from cloneproof.errors import MechanismError
from cloneproof.market.rewards import gaussian
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.rule import Rule
from cloneproof.mechanisms.scores.champions import Champions

SCANS = ("first-pass", "best-of-draws")
CONTESTS = ("steady-kl-ucb", "steady-ucb")  # more and better rewards never cost a champion a round
SCAN_SCOPE = (
    "all copies and withholdings, against any opponents whose means and strategies do not depend on which of the "
    "agent's originals is better, at every horizon"
)


GAUSSIAN_SCAN = (
    "the scan theorem (docs/textbook/reservoir.md; our proof, unreviewed): arms are touched only through uniform draws "
    "with replacement, and scores are sums of Gaussian rewards of one standard deviation and means of at least 0, "
    "whose likelihood ratios rise with the score, which gives stochastic order, hazard ratios and champions that do "
    "not improve along the scan"
)


def scan_theorem(case: AuditCase) -> str | None:
    """The theorem in a sentence, where its conditions hold for the agent; else None.

    >>> from cloneproof import Agent, Discrete, Market, mechanism
    >>> from cloneproof.analysis.audit.cases import audit_case
    >>> market = Market([Agent("ana", 2, Discrete([0.2, 0.6], [0.5, 0.5]))], horizon=100)
    >>> scan_theorem(audit_case(market, mechanism("reservoir", rounds=5, draws=3, threshold=3), "ana"))[:16]
    'the scan theorem'
    """
    if case.running.clearing.planned_epochs:  # epochs start afresh with the same means, so payoffs add up
        sentences = [scan_theorem(epoch) for epoch in epoch_cases(case)]
        return None if None in sentences else f"in every epoch: {sentences[-1]}"
    family, agent = case.market.family, case.agent
    if not is_scan(case.running) or not same_prior(agent):
        return None
    if family.quantile is gaussian.quantile:
        return None if any(rule.binarise for rule in case.running.rules) else GAUSSIAN_SCAN
    if not (family.low >= 0 and family.high <= 1 and case.running.arm.binarise):
        return None
    support = agent.support
    if support is not None and violated_odds(sorted(Fraction(value) for value in support)) is not None:
        return None
    checked = (
        "the odds of any two means in [0, 1]" if support is None else f"the odds of the {len(support)} possible means"
    )
    return (
        "the scan theorem (docs/textbook/reservoir.md; our proof, unreviewed): arms are touched only through uniform "
        f"draws with replacement, scores are counts of coins, and {checked} are in the order of the means, which "
        "gives stochastic order, hazard ratios and champions that do not improve along the scan"
    )


def is_scan(running: Mechanism) -> bool:
    """Whether it is a scan over draws that the theorem covers: by one of our rules, flat or with a contest."""
    arm, agent, score = running.arm, running.agent, running.scoring
    if not _is_one_of(arm, SCANS) or running.sample is not None or running.restart is not None:
        return False
    if agent is None:
        return True
    if not isinstance(score, Champions) or not _is_one_of(agent, CONTESTS):
        return False
    return score.after >= arm.draws * arm.explore and agent.explore > score.after


def _is_one_of(rule: Rule, names: tuple[str, ...]) -> bool:
    """Whether it is our rule of that name, and not somebody's own that is only called so."""
    try:
        return rule.name in names and rule.to_dict() is not None
    except MechanismError:  # its options are not those of our rule
        return False
