"""The five extensions: the script runs, and every key number has a second computation.

`studies/extensions` holds the study; docs/textbook/extensions.md tells it.
"""

import math
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import cloneproof as cp
from support.sizes import LONG

STUDY = Path(__file__).parents[2] / "studies" / "extensions"


@pytest.fixture(scope="module", autouse=True)
def study():
    """The study's modules can be imported by their names."""
    sys.path.insert(0, str(STUDY))
    yield
    sys.path.remove(str(STUDY))


def test_the_script_draws_every_figure_of_the_page(tmp_path, capsys):
    letters = [] if LONG else ["e"]
    runpy.run_path(str(STUDY))["main"](["--quick", *letters, str(tmp_path)])
    page = (STUDY.parents[1] / "docs" / "textbook" / "extensions.md").read_text()
    drawn = {path.name for path in tmp_path.glob("*.svg")}
    named = {part.split(")")[0] for part in page.split("](figures/")[1:]}
    assert len(drawn) == 1 if letters else drawn == named
    assert drawn <= named
    assert all(path.stat().st_size > 10_000 for path in tmp_path.iterdir())
    assert ("keeps out agents" if letters else "0 pay") in capsys.readouterr().out


# ---- (a) a smaller m


def test_the_first_profitable_copy():
    market = cp.Market([cp.Agent(n, 2, cp.Discrete([0.25, 0.75], [0.5, 0.5])) for n in ("a", "b")], horizon=10**6)
    for m, expected in ((28, "exploitable"), (29, "clone-proof")):
        made = cp.mechanism("holdout-h-etc", arm_rounds=m, score_rounds=60, max_arms=4)
        found = cp.audit(market, made, agent="a", opponents="any")
        assert found.verdict == expected
    assert found.worst.gain.high < 0


def test_a_smaller_m_can_be_safe_where_a_larger_one_is_not():
    prior = cp.Discrete([0.4, 0.85], [0.5, 0.5])
    market = cp.Market([cp.Agent(n, 2, prior) for n in ("a", "b")], horizon=10**4)
    verdicts = []
    for m in (1, 2):
        made = cp.mechanism("holdout-h-etc", arm_rounds=m, score_rounds=5, max_arms=4)
        verdicts.append(cp.audit(market, made, agent="a", opponents="any").verdict)
    assert verdicts == ["clone-proof", "exploitable"]


# ---- (b) other contests


def steady(m, arms, horizon):
    return cp.Mechanism(
        agent=cp.rule("steady-ucb", horizon=horizon, rounds=arms * m + 1),
        arm=cp.rule("etc", rounds=m),
        score=cp.parts.HoldOut(horizon, arms),
    )


def test_no_contest_pays_more_than_the_corner_and_a_perverse_one_nearly_does():
    from contest_gains import Game, gain, worst_over_contests
    from exact_contests import CLOCKED, LAST, LEADER, STEADY

    game, others = Game((0.25, 0.75), 4, 2, 9), np.linspace(0, 1, 6)[:, None]
    for m in (1, 3):
        for copies in ((2, 1), (3, 1), (2, 2)):
            corner = worst_over_contests(game, m, copies)
            found = [gain(game, m, copies, contest, others).max() for contest in (STEADY, CLOCKED, LEADER, LAST)]
            assert max(found) <= corner + 1e-12
    assert worst_over_contests(Game((0.25, 0.75), 4, 2, 10**6), 3, (2, 2)) > 0


def test_counting_from_one_s_own_commitment_lets_copies_pay():
    """The planted mistake: the condition on m holds, and still the copies gain, as they make an index optimistic."""
    from contest_gains import Game, gain
    from exact_contests import STEADY

    game = Game((0.25, 0.75), 3, 2, 20)
    m, others = game.enough(3), np.array([[0.9]])
    assert 3 * math.exp(-m / 4) <= m / 4 / game.horizon(m)
    assert gain(game, m, (2, 1), STEADY, others, from_commitment=True)[0] > 0.5
    assert gain(game, m, (2, 1), STEADY, others)[0] < -1


def eliminated(tapes, stages, margin, total):
    """Rounds of agent 0 on given rewards."""
    alive, sums, mine, left = [0, 1, 2], [0, 0, 0], 0, total
    for stage in range(stages):
        for i in alive:
            sums[i] += tapes[i][stage]
        mine, left = mine + (0 in alive), left - len(alive)
        best = max(sums[i] for i in alive)
        alive = [i for i in alive if best - sums[i] <= margin]
        if len(alive) == 1:
            break
    leaders = [i for i in alive if sums[i] == max(sums[k] for k in alive)]
    return mine + left * (0 in leaders) / len(leaders)


def test_one_more_success_can_cost_an_agent_the_elimination():
    """It throws out the one who would have thrown out the one who later wins: no coupling of paths."""
    one, two = (0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0), (0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1)
    own = (1, 1, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0)
    assert eliminated((own, one, two), 13, 2, 100) == 80
    assert eliminated(((1, 1, 1, *own[3:]), one, two), 13, 2, 100) == 13


def test_one_more_success_never_costs_a_round_under_steady_ucb():
    random = np.random.default_rng(3)

    def rounds(tapes, horizon):
        won, pulls = [tape[0] for tape in tapes], [1] * len(tapes)
        for _ in range(horizon - len(tapes)):
            index = [w / n + math.sqrt(math.log(horizon) / n) for w, n in zip(won, pulls, strict=True)]
            i = index.index(max(index))
            won[i], pulls[i] = won[i] + tapes[i][pulls[i]], pulls[i] + 1
        return pulls[0]

    for _ in range(150):
        tapes = random.integers(0, 2, size=(3, 40)).tolist()
        more = list(tapes[0])
        more[random.integers(0, 12)] = 1
        assert rounds([more, *tapes[1:]], 40) >= rounds(tapes, 40)


# ---- (c) different priors


def test_the_known_numbers_of_different_priors():
    from asymmetric import market

    made = cp.mechanism("holdout-h-etc", arm_rounds=6, score_rounds=1, max_arms=10)
    paid = [cp.evaluate(market((0.9, 0.1), 85), made, {"ana": c}).payoff["ana"].value for c in ((1, 1), (9, 1))]
    by_hand = [12 * 0.5 * 2 + (49 + 12) * 0.91, 84 * 0.82 + 0.91]
    assert paid == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("p", [(0.9, 0.1), (0.7, 0.3), (0.6, 0.2)])
def test_a_flood_pays_up_to_the_formula_s_horizon_and_no_further(p):
    from asymmetric import best_gain, never_pays_from

    edge = never_pays_from(*p) * 5
    assert best_gain(p, 5, math.ceil(edge) - 2)[0] > 0
    assert best_gain(p, 5, math.ceil(edge) + 1)[0] <= 1e-9


def test_a_long_trial_stops_the_flood_and_a_short_one_does_not():
    from asymmetric import audit_priors

    assert audit_priors((0.7, 0.3), (0.25, 0.75), 3, 10**4)[2] == "clone-proof"
    assert audit_priors((0.8, 0.2), (0.25, 0.75), 3, 10**4, short=True)[2] == "exploitable"


# ---- (d) withholding


@pytest.mark.parametrize(("chance", "originals"), [(0.5, 3), (0.3, 4), (0.5, 4)])
def test_the_horizon_from_which_on_all_is_best_by_three_ways(chance, originals):
    """The stretches of equal m, the formula, and one horizon after another."""
    from withholding import all_from, all_from_by_formula, ratio

    found, _ = all_from((0.0, 1.0), chance, originals)
    assert found == all_from_by_formula(chance, originals)
    best = [1 - (1 - chance) ** j for j in range(originals + 1)]

    def payoff(kept, m, horizon):
        explored = min(horizon, kept * m)
        return explored * chance + (horizon - explored) * best[kept]

    last = 0
    for horizon in range(1, 3000):
        m = math.ceil(2 * originals * math.log(2 * horizon))
        if max(payoff(j, m, horizon) for j in range(1, originals)) > payoff(originals, m, horizon) + 1e-9:
            last = horizon
    assert found == last + 1
    assert last < ratio(chance, originals) * math.ceil(2 * originals * math.log(2 * last))


# ---- (e) a second account


def test_the_gain_of_a_second_account_is_the_audit_s_and_tends_to_its_limit():
    from splitting import limit, market, second_account

    found = second_account((0.25, 0.75), 2, 2, 10**5)
    own = market((0.25, 0.75), 2, 2, 10**5)
    apart = cp.audit(
        own, cp.mechanism("holdout-h-etc", market=own), agent="a0", also=("splitting",), search=cp.Search(copies=1)
    ).also
    assert apart["splitting"].gain.value == pytest.approx(found.fee, rel=1e-9)
    honest, split = limit((0.25, 0.75), 2, 2)
    assert found.fee / found.honest == pytest.approx(split / honest - 1, abs=5e-3)
