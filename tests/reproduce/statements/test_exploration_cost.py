"""The slack that decides TRP for all copies: against a search over copies, at every horizon."""

import pytest

import cloneproof as cp
from cloneproof.analysis.properties.rp_regret import rp_regrets, sorted_copies
from cloneproof.market.instance import Instance
from cloneproof.reproduce.statements.exploration_cost import exploration_slack, least_slack


@pytest.mark.parametrize("means", [(0.25, 0.75), (0.1, 0.4, 0.9), (0.5, 0.5, 1.0)])
def test_where_there_is_slack_no_copies_lower_the_regret_at_any_horizon(means):
    horizon, covered = 120, 0
    horizons = range(6, horizon + 1, 6)
    for m in (2, 9, 14):
        mechanism = cp.mechanism("etc", arm_rounds=m)
        if exploration_slack(mechanism, means, horizon).low < 0:
            continue
        covered += 1
        honest = rp_regrets(mechanism, Instance(means, (1,) * len(means)), horizons, "bernoulli")
        for copies in sorted_copies(len(means), 2):
            copied = rp_regrets(mechanism, Instance(means, copies), horizons, "bernoulli")
            assert all((copied[h] - honest[h]).high >= 0 for h in honest), (m, copies)
    assert covered


def test_without_slack_copies_may_pay():
    """Means 1/4 and 3/4 over a million rounds: covered at m = 31, and copies pay at 28 (theory: the first at 28)."""
    enough, too_few = (cp.mechanism("etc", arm_rounds=m) for m in (31, 28))
    assert least_slack(enough, (0.25, 0.75), 2, 10**6).low > 0
    assert least_slack(too_few, (0.25, 0.75), 2, 10**6).high < 0
    assert cp.paper.check_trp(too_few, (0.25, 0.75), 2, 10**6, max_copies=2).verdict == "violated"
