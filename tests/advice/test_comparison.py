"""The table of all mechanisms: verdicts are the audit's, exact ones have exact numbers."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import cloneproof as cp
from cloneproof._clock import budget_clock
from cloneproof.advice import comparison
from cloneproof.engines.estimate import Estimate
from cloneproof.mechanisms.catalogue import AT_RANDOM_ONLY, CATALOGUE, ON_PAGES_ONLY
from support import command
from support.sizes import LONG

CREATORS = cp.load_market(Path(__file__).parents[2] / "examples" / "creators.toml")


NAMES = ["h-etc-r", "reservoir", "etc", "uniform-etc"]
ROW = comparison.ComparedMechanism(
    "", verdict=None, agent="", copies=(), gain=None, relative_gain=0.0, state=None, regret=None, attacked=None,
    exact=True, tried=0, remark="", seconds=0.0,
)  # fmt: skip


@pytest.fixture(scope="module")
def told():
    return []


@pytest.fixture(scope="module")
def rows(told):
    search = cp.Search(copies=2, seconds=600)
    return cp.compare(CREATORS, NAMES, search=search, progress=lambda *said: told.append(said))


def test_what_may_cost_less_is_not_beaten_by_what_surely_costs_no_more():
    """A sampled 52 ± 2,748 is no least cost beside an exact 142; a sampled 130 ± 2 is."""

    def answer(value, error):
        costs = {"exact": Estimate(142.0, 1e-9, "proven", ""), "sampled": Estimate(value, error, "confidence", "")}
        rows = [replace(ROW, name=name, verdict="clone-proof", regret=cost) for name, cost in costs.items()]
        told = comparison.Comparison(rows, horizon=4000, tolerance=0.0)
        return next(iter(told.sections())).title

    assert answer(52.0, 2748.0) == "exact is clone-proof and costs 142 rewards over 4,000 rounds; sampled may cost less"
    assert answer(130.0, 2.0).startswith("sampled is clone-proof and costs least")


def test_rows_are_those_of_the_audit(rows, told):
    assert [row.name for row in rows] == NAMES
    fastest_first = ["reservoir", "uniform-etc", "etc", "h-etc-r"]
    begun = [(done, 4, f"auditing {name}") for done, name in enumerate(fastest_first)]
    assert [said for said in told if "auditing" in said[2]] == begun
    assert told[-1] == (4, 4, "audited")
    assert [row.verdict for row in rows] == ["exploitable", "clone-proof", "exploitable", "clone-proof"]
    for row in rows:
        made = cp.mechanism(row.name, market=CREATORS)
        attacked = cp.evaluate(CREATORS, made, {row.agent: row.copies})
        honest = cp.evaluate(CREATORS, made)
        assert row.exact
        assert row.regret.value == pytest.approx(honest.regret.value)
        assert row.attacked.value == pytest.approx(attacked.regret.value)
        gained = attacked.payoff[row.agent].value - honest.payoff[row.agent].value
        assert row.gain.value == pytest.approx(gained, abs=1e-6)
    assert rows.to_latex(["mechanism", "verdict"]).count("exploitable") == 2
    data = json.loads(json.dumps(rows.to_dict(), allow_nan=False))["mechanisms"]
    command.schema("compare").validate(data)
    assert [each["mechanism"] for each in data] == NAMES
    shown = str(rows)
    assert all(name in shown for name in NAMES)
    assert max(map(len, shown.splitlines())) <= 100


def test_rows_are_on_the_frontier(rows):
    frontier = {row.name: row for row in rows.frontier}
    assert frontier["reservoir"].promise == "proven"
    assert frontier["reservoir"].best
    assert frontier["etc"].pays
    assert not frontier["uniform-etc"].best  # proven too, and it loses more
    assert [row.frontier.best for row in rows] == [frontier[row.name].best for row in rows]
    assert "What honesty costs" in str(rows)


def test_a_mechanism_for_random_ends_is_not_compared_at_a_fixed_one(monkeypatch):
    monkeypatch.setattr(comparison, "compare_one", lambda market, name, *_: replace(ROW, name=name))
    fixed = cp.compare(CREATORS)
    assert [row.name for row in fixed] == [name for name in CATALOGUE if name not in (*AT_RANDOM_ONLY, *ON_PAGES_ONLY)]
    assert len(cp.compare(CREATORS.with_horizon(4000, "at-random"))) == len(CATALOGUE) - len(ON_PAGES_ONLY)
    assert "reservoir-streams" in [row.name for row in cp.compare(replace(CREATORS, positions=(1, 0.5)))]


def test_times_are_of_the_clock_that_limits_them_and_tables_say_their_horizon():
    """Work is counted here, so that the same questions take the same time; it is less than they had together."""
    with budget_clock(None):
        found = [cp.compare(CREATORS, ["etc", "reservoir"], search=cp.Search(seconds=9)) for _ in range(2)]
    times = [[row.seconds for row in each] for each in found]
    assert times[0] == pytest.approx(times[1])
    assert 0 < sum(times[0]) <= 9
    said = " ".join(str(found[0]).split())
    assert "All mechanisms had 9 s of counted work together." in said
    assert f"Gains and regrets are over {CREATORS.horizon:,} rounds." in said


@pytest.mark.skipif(not LONG, reason="samples two mechanisms twice")
def test_one_seed_gives_one_answer_in_any_number_of_processes():
    alone, together = (
        [replace(row, seconds=0.0) for row in cp.compare(CREATORS, ["ucb1", "thompson"], processes=processes)]
        for processes in (1, 2)
    )
    assert alone == together


@pytest.mark.parametrize(("state", "said", "not_said"), [
    ("none pays at 99 %", "holds at 99 %", "proven"), ("proof", "is proven", "99 %"),
])  # fmt: skip
def test_what_holds_at_99_percent_is_not_called_proven(state, said, not_said, rows):
    shown = str(replace(rows, rows=(replace(rows[1], exact=False, state=state, frontier=None),)))
    assert said in shown
    assert not_said not in shown


def test_what_cannot_be_made_says_why(ticking_clock):
    market = cp.Market([cp.Agent("ana", 2, cp.Uniform(0, 1))], horizon=1000)
    (row,) = cp.compare(market, ["h-etc-r"])
    assert row.verdict is None
    assert "gap" in row.remark
    (row,) = cp.compare(market, ["holdout-kl-ucb"], search=cp.Search(seconds=0.2))
    assert row.verdict == "undecided"
    assert "needs a gap" in row.remark


@pytest.mark.parametrize("processes", [1, 2])
def test_what_there_is_no_time_for_is_said(processes):
    rows = cp.compare(CREATORS, ["ucb1", "etc"], search=cp.Search(seconds=1e-6), processes=processes)
    assert [(row.name, row.verdict) for row in rows] == [("ucb1", None), ("etc", None)]
    assert str(rows).count("No time was left for it; give more seconds") == 2


@pytest.mark.parametrize("processes", [1, 2])
def test_an_interrupt_keeps_the_rows_that_are_done(processes):
    def stop(done, total, what):
        if done:
            raise KeyboardInterrupt

    found = cp.compare(CREATORS, ["reservoir", "etc"], processes=processes, progress=stop)
    assert found.interrupted
    assert len(found) == 1


def test_an_agent_that_earns_nothing_has_no_infinite_gain(ticking_clock):
    market = cp.Market([cp.Agent("ana", 2, cp.Point(0.0)), cp.Agent("bo", 1, cp.Point(0.6))], horizon=3000)
    (row,) = cp.compare(market, ["epsilon-greedy"], search=cp.Search(seconds=0.02))
    assert json.loads(json.dumps(row.to_dict(), allow_nan=False))["mechanism"] == "epsilon-greedy"


def test_variants_stand_beside_copies():
    """Five variants of a clip pay under UCB1, and not under a uniform draw of agents; a black box has no number."""
    market = cp.Market([cp.Agent(name, 1, cp.Discrete([0.2, 0.8], [0.5, 0.5])) for name in ("ana", "bo")], horizon=40)
    made = {name: cp.mechanism(name, market=market) for name in ("ucb1", "uniform-etc")}
    ucb, uniform = (comparison._variants(market, each, "ana", 0.5, seed=3) for each in made.values())
    assert ucb.gain.low > 0 >= uniform.gain.low
    assert (ucb.variants, ucb.spread) == (5, 0.05)
    audited = replace(ROW, verdict="exploitable", agent="ana", copies=(4,))
    text = str(comparison.Comparison((replace(audited, variants=ucb), audited), 0.005))
    assert text.count(f"{100 * ucb.relative_gain:+.0f} ±") == 1
