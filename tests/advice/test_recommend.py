"""What to run: ranked by regret that other engines confirm, promises that hold, and honest words where nothing fits."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

import cloneproof as cp
from cloneproof._lib.clock import wall_clock
from cloneproof._lib.sections import Tiles
from cloneproof.advice.assessment import DECLARED, tuned_mechanisms
from cloneproof.advice.assumptions import largest_gain, market_of_bests, true_markets, wrong_declarations
from cloneproof.advice.recommendation import terms_toml
from cloneproof.advice.regret import SamplingBudget, computed_regret, expected_best, random_regret, rank, regret_of
from cloneproof.cli.advice import parsed_rates
from cloneproof.evaluation.reference import runs_of
from cloneproof.market.alike import prior_between
from cloneproof.market.market import full_copies
from cloneproof.mechanisms.facts import Setting
from cloneproof.runs.sampler import kernel_outcomes
from cloneproof.serve.market.terms import MarketSpec, build_mechanism, complete
from support import command
from support.advised import LONG_QUESTIONS, advised, still_clock, without_long_questions
from support.clocks import TurnedClock, ticking

CREATORS = Path(__file__).parents[2] / "examples" / "creators.toml"
CLICKS = {"agents": 8, "originals": 3, "horizon": 10**8, "values": (0.002, 0.004, 0.006)}


@pytest.fixture(scope="module")
def creators():
    return advised(cp.load_market(CREATORS), asked=LONG_QUESTIONS)


@pytest.fixture(scope="module")
def clicks():
    return advised(cp.Market.alike(**CLICKS), declared=(), asked=("wrong_declarations",))


def test_what_needs_no_declaration_comes_first_and_nobody_gains(creators):
    market = cp.load_market(CREATORS)
    learned = [each for each in creators.ranked if each.regret.value <= creators.random_regret / 2]
    order = [(each.needs != "", each.regret.value) for each in learned]
    assert order == sorted(order)
    assert {each.name for each in learned if not each.needs} >= {"reservoir", "reservoir-contest"}
    assert creators.choice.regret.value == min(each.regret.value for each in learned if not each.needs)
    assert creators.fits
    assert not creators.advice
    for each in creators.ranked[:2]:
        again = cp.audit(market, cp.mechanism(each.name, **each.parameters), tolerance=0.005)
        assert again.verdict == "clone-proof"
    sampled = cp.evaluate(market, creators.choice.mechanism, engine="runs", search=cp.Search(runs=500)).regret
    assert abs(sampled.value - creators.choice.regret.value) <= sampled.error + creators.choice.regret.error


def test_at_click_rates_the_reservoir_fits(clicks):
    assert clicks.choice.name == "reservoir"
    assert clicks.choice.regret.value < 250
    assert clicks.fits
    assert clicks.choice.exploring < 0.01


def test_a_wrong_declaration_is_computed_in_the_true_market(clicks):
    market = cp.Market.alike(**CLICKS)
    truths = dict(true_markets(market))
    assert {"rates are half as high", "rates are twice as high"} <= {wrong.what for wrong in clicks.choice.wrong}
    flat = next(each.mechanism for each in clicks.ranked if each.name == "reservoir")
    for wrong in wrong_declarations(market, flat, SamplingBudget(), SamplingBudget())[:-1]:
        made, truth = flat, truths.get(wrong.what, market)
        if "threshold" in wrong.what:
            step = round(flat.parameters["threshold"] ** 0.5) * (-1 if "low" in wrong.what else 1)
            made = cp.mechanism("reservoir", **flat.parameters | {"threshold": flat.parameters["threshold"] + step})
        assert wrong.regret.value == pytest.approx(cp.evaluate(truth, made).regret.value)
        assert wrong.gain == 0.0
    halves = truths["items differ half as much"].agents[0].support
    assert halves == pytest.approx((0.004, 0.005, 0.006))
    assert truths["twice as many items"].most_originals == 6
    assert truths["half the traffic"].horizon == 5 * 10**7


def interrupt(at):
    """Ctrl-C at a step."""

    def tell(done, total, what):
        if what == at:
            raise KeyboardInterrupt

    return tell


def test_continuous_rates_are_answered_by_samples_and_an_interrupt_keeps_what_is_known():
    market = cp.Market([cp.Agent(name, 3, cp.Beta(2, 60)) for name in ("ana", "bo", "cy")], horizon=20_000)
    found = advised(market, declared=DECLARED, progress=interrupt("the end of the season"))
    assert found.interrupted
    by_name = {each.name: each for each in found.ranked}
    assert by_name["reservoir"].regret.error < 0.5 * by_name["reservoir"].regret.value
    assert "reservoir-contest" in by_name
    assert "expected a market with a gap" in tuned_mechanisms(["uniform-etc"], market)[1]["uniform-etc"]
    assert found.choice.needs == ""
    with pytest.raises(KeyboardInterrupt):
        advised(market, progress=interrupt("tuning and auditing"))


def test_nothing_is_tuned_after_the_time_and_what_was_left_out_is_said(monkeypatch):
    """By a clock that stands still until the first mechanism was judged, and is then at the end of the budget."""
    tuned, clock = [], TurnedClock()

    def counted(names, market):
        tuned.extend(names)
        found = tuned_mechanisms(names, market)
        clock.now = 1.0 if len(tuned) == 1 else 100.0  # some time goes by in the first, all of it in the second
        return found

    monkeypatch.setattr("cloneproof.advice.recommend.tuned_mechanisms", counted)
    market = cp.Market.alike(agents=300, originals=2, horizon=10**7, values=(0.01, 0.02))
    with wall_clock(clock):
        found = cp.recommend(market, search=cp.Search(seconds=10))
    assert tuned == ["reservoir", "reservoir-contest"]
    assert found.choice.name == "reservoir"
    assert found.others["uniform-etc"] == "there was no time left for it"
    assert "were over before everything was looked at" in " ".join(found.notes)


def test_a_planted_gain_is_found():
    market = cp.load_market(CREATORS)
    gain, agent, copies = largest_gain(market, cp.mechanism("etc", arm_rounds=20))
    honest = cp.evaluate(market, cp.mechanism("etc", arm_rounds=20)).payoff[agent]
    copied = cp.evaluate(market, cp.mechanism("etc", arm_rounds=20), {agent: copies}).payoff[agent]
    assert gain == pytest.approx((copied.value - honest.value) / honest.value, rel=1e-6)
    assert gain > 0.5


@pytest.mark.parametrize("prior", [cp.Discrete([0.2, 0.8], [0.5, 0.5]), cp.Uniform(0.2, 0.6), cp.Beta(3.6, 84.1)])
def test_agents_who_name_their_best_are_a_market_of_one_item_each(prior):
    """What is best in the market stays so; of continuous rates the best is continuous too."""
    market = cp.Market([cp.Agent(name, 3, prior) for name in ("ana", "bo")], 100)
    bests = market_of_bests(market)
    assert expected_best(bests) == pytest.approx(expected_best(market), rel=1e-5)
    best = bests.agents[0].priors[0]
    assert best.mean == pytest.approx(expected_best(cp.Market(market.agents[:1], 100)), rel=1e-5)
    assert best.quantile(0.5**3) == pytest.approx(prior.quantile(0.5))
    assert (best.atoms is None) == (prior.atoms is None)


def test_random_play_costs_the_best_less_the_average():
    market = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5]))], horizon=100)
    assert random_regret(market) == pytest.approx(100 * (0.75 - 0.5))


def test_nothing_fits_little_traffic_and_it_says_what_would():
    found = advised(cp.Market.alike(**CLICKS | {"horizon": 2000}), declared=())
    assert not found.fits
    assert "Nothing clone-proof fits this traffic" in found.advice
    assert "rounds on the reservoir would cost less" in found.advice


@given(low=st.floats(1e-6, 0.9), part=st.floats(0.0, 1.0))
def test_nine_of_ten_rates_lie_between_two(low, part):
    high = 1.05 * low * (min(1000.0, 0.98 / low) / 1.05) ** part
    prior = prior_between((low, high))
    below, above = beta.cdf([low, high], prior.a, prior.b)
    assert abs(below - 0.05) < 0.005  # parameters have five digits
    assert abs(above - 0.95) < 0.005


def test_the_command_writes_page_and_terms(tmp_path):
    page, terms = tmp_path / "page.html", tmp_path / "terms.toml"
    arguments = ["--agents", "2", "--originals", "2", "--rates", ".2,.8", "--rounds", "2e3", "--seconds", "0.2"]
    with still_clock(declared=()):
        done = command.run("recommend", *arguments, "--html", page, "--toml", terms)
    assert done.returncode == 0, done.stderr
    assert "Run " in done.stdout
    assert "The choice and its alternatives" in done.stdout
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert tomllib.loads(terms.read_text())["horizon"] == 2000


def test_a_market_that_ends_at_random_gets_reservoirs_and_the_index_with_its_ceiling():
    agents = [cp.Agent(name, 2, cp.Beta(2, 8)) for name in ("ana", "bo")]
    market = cp.Market(agents, horizon=200, ends="at-random")
    by_name = {each.name: each for each in advised(market, progress=interrupt("the end of the season")).ranked}
    assert set(by_name) == {"reservoir", "reservoir-contest", "reservoir-index", "reservoir-bars"}
    for name in ("reservoir-index", "reservoir-bars"):
        assert by_name[name].gain < 0.005
        assert "No provider gains" in by_name[name].promise


def test_bars_are_advised_where_rates_repeat_and_the_season_ends_at_random():
    agents = [cp.Agent(name, 3, cp.Discrete([0.05, 0.1, 0.2], [1 / 3] * 3)) for name in ("ana", "bo", "cy")]
    market = cp.Market(agents, horizon=5000, ends="at-random")
    found = advised(market, progress=interrupt("the end of the season"))
    assert found.choice.name == "reservoir-bars"
    assert found.choice.regret.value == pytest.approx(cp.evaluate(market, found.choice.mechanism).regret.value)
    assert "whatever the others do: proven" in found.choice.promise
    terms = msgspec.convert(tomllib.loads(terms_toml(market, found.choice)), MarketSpec)
    assert build_mechanism(complete(terms)).to_dict() == found.choice.mechanism.to_dict()
    fixed = advised(market.with_horizon(5000, "at-horizon"), declared=(), progress=interrupt("the end of the season"))
    assert "reservoir-bars" not in [each.name for each in fixed.ranked] + list(fixed.others)
    off = dict(found.choice.mechanism.facts(Setting.of(market)).doubts)
    assert list(off) == ["the bar is a fifth too low", "the bar is a fifth too high"]
    bars = [made.arm.bar for made in off.values()]
    assert bars[0].whole > found.choice.mechanism.arm.bar.whole > bars[1].whole


def test_questions_that_were_left_are_exit_code_3():
    with ticking(0.1):
        left = command.run("recommend", CREATORS, "--seconds", "2", "--json")
    assert (left.returncode, json.loads(left.stdout)["left"]) == (3, True)


def test_ctrl_c_before_anything_is_known_is_said(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("cloneproof.advice.recommend.tuned_mechanisms", interrupted)
    done = command.run("recommend", CREATORS)
    assert (done.returncode, done.stdout) == (130, "")
    assert "interrupted before anything was known" in done.stderr


BETA = cp.Market([cp.Agent(name, 2, cp.Beta(2, 20)) for name in ("ana", "bo", "cy")], horizon=3000)


def test_the_first_is_settled_by_paired_samples_or_rivals_are_named():
    """Sure gaps are settled; near ties and mechanisms that cannot be played in time are not."""
    good, bad = (cp.mechanism("reservoir-contest", rounds=r, draws=2, threshold=1, horizon=3000) for r in (2, 300))
    with ticking(0.0):
        found = rank(BETA, [bad, good], 2.0, 0)
        assert not found.rivals(1)
        assert found.rivals(0) == [1]
        twins = rank(BETA, [good, replace(good, name="twin")], 0.05, 0)
        assert not twins.rivals(0)  # the same worlds and runs: no difference
        assert twins.regrets[0] == twins.regrets[1]
        other = cp.mechanism("reservoir-contest", rounds=2, draws=3, threshold=1, horizon=3000)
        assert rank(BETA, [good, other], 0.02, 0).rivals(0) == [1]
        slow = BETA.with_horizon(10**15)
        unplayed = rank(slow, [cp.mechanism("reservoir", rounds=40, draws=4, threshold=6), good], 1e-3, 0)
        assert unplayed.regrets[1] is None
        assert unplayed.rivals(0) == [1]


def test_regrets_of_a_ranking_are_those_of_other_engines():
    """A flat reservoir by moments, and the same one played; one in a million."""
    made = cp.mechanism("reservoir", rounds=40, draws=4, threshold=6)
    with ticking(0.0):
        ranking = rank(BETA, [made, cp.mechanism("reservoir-contest", market=BETA)], 1.0, 0)
    played = kernel_outcomes(runs_of(BETA, made, full_copies(BETA.agents, None), 9), 0, 4000).regret
    assert abs(ranking.regrets[0].value - played.mean()) < 5 * played.std() / 4000**0.5


def test_an_unsettled_answer_names_candidates_and_crowns_none(creators):
    open_question = replace(creators, settled=False, candidates=("reservoir-contest", "reservoir", "mine"))
    words = str(open_question).replace("\n", " ")
    assert "Not settled: reservoir-contest or reservoir or mine" in words
    assert "Run " not in words
    assert "what mine costs is not known" in words
    assert open_question.to_dict()["settled"] is False
    first, findings, second, *_ = open_question.sections()
    assert (
        "reservoir, mine may cost over 5 % less",
        "give more time (`--seconds`), or run the first: it is as safe",
    ) in (findings.parts[0].rows)
    assert str(open_question).startswith("Not settled: reservoir-contest or reservoir or mine\n")
    assert not any(isinstance(part, Tiles) for part in first.parts)  # what the choice costs in large type
    assert second.title == "reservoir-contest, the cheapest as far as is known"
    assert repr(open_question) == "Recommendation(not settled: 'reservoir-contest' or 'reservoir' or 'mine', fits=True)"
    unknown = replace(open_question, ranked=(), fits=False)
    assert str(unknown).startswith("Not settled: reservoir-contest or reservoir or mine\n")
    assert "Nothing clone-proof" not in str(unknown)
    assert replace(open_question, fits=False).unsettled  # what mine costs is not known, so it may fit
    assert not replace(open_question, fits=False, candidates=("reservoir-contest", "reservoir")).unsettled


def test_what_was_left_for_lack_of_time_is_an_exit_code_where_time_was_given(creators, monkeypatch):
    monkeypatch.setattr(cp, "recommend", lambda *_, **__: replace(creators, left=True))
    codes = [command.run("recommend", CREATORS, *more).returncode for more in ((), ("--seconds", "9"))]
    assert codes == [0, 3]


def test_late_rewards_are_said():
    agents = [cp.Agent(name, 2, cp.Discrete([0.2, 0.8], [0.5, 0.5])) for name in ("ana", "bo")]
    found = advised(cp.Market(agents, 400, delays="independent"), declared=())
    promises = {each.name: each.promise for each in found.ranked}
    assert "Rewards come late here: what copies gain by that is nothing" in promises["reservoir"]
    assert "what copies gain by that is unknown" in promises["reservoir-contest"]


@pytest.mark.parametrize("prior", [cp.Beta(3, 60), cp.Discrete([0.02, 0.08], [0.5, 0.5])])
def test_the_cost_of_a_page_is_that_of_the_evaluation(prior):
    """It is sampled, and its interval says how well it is known."""
    market = cp.Market([cp.Agent(name, 2, prior) for name in "abcd"], 6000, positions=(1, 0.6, 0.4))
    made = cp.mechanism("reservoir", rounds=60, draws=6, choose="best")
    assert computed_regret(market, made) is None
    with ticking(0.0):
        told = regret_of(market, made, SamplingBudget(0.2))
    played = kernel_outcomes(runs_of(market, made, full_copies(market.agents, None), 9), 0, 4000).regret
    assert abs(told.value - played.mean()) < 2 * told.error + 5 * played.std() / 4000**0.5


def test_the_other_end_of_the_season_is_priced_in_its_own_market():
    """By the cheapest, with its ceiling in figures, and by the cheapest under which copies gain nothing."""
    agents = [cp.Agent(name, 3, cp.Beta(2, 8)) for name in ("ana", "bo", "cy", "di")]
    found = advised(cp.Market(agents, 3000), declared=(), progress=interrupt("what may be wrong"))
    fixed, at_random, proven = found.options
    assert (fixed.asked, at_random.asked, proven.asked) == (True, False, False)
    assert fixed.regret == found.choice.regret
    market = cp.Market(agents, 3000, ends="at-random")
    again = cp.mechanism(at_random.mechanism, market=market)
    sampled = cp.evaluate(market, again, engine="runs", search=cp.Search(runs=400, bounds="asymptotic")).regret
    assert abs(sampled.value - at_random.regret.value) < sampled.error + at_random.regret.error
    assert [at_random.mechanism, proven.mechanism] == ["reservoir-index", "reservoir-bars"]
    assert at_random.regret.value < proven.regret.value
    ceiling = cp.audit(market, again, agent="ana").gain_at_most.high / (3000 / 4 * 0.2)  # of what a random choice pays
    assert at_random.gain == pytest.approx(ceiling, rel=0.2)
    assert proven.gain == 0
    ends = [line for line in str(found).splitlines() if line.startswith("The season ends at random")]
    assert [line.split("  ")[-1].strip() for line in ends] == ["at most 0.1%", "nothing"]


def test_rates_are_a_prior_a_list_or_a_log(tmp_path):
    log = tmp_path / "clicks.csv"
    rows = [("agent", "item", "click")]
    rows += [(f"a{k}", f"i{k}", int(view % 100 < 10 + k)) for k in range(20) for view in range(400)]
    log.write_text("\n".join(",".join(map(str, row)) for row in rows))
    assert parsed_rates(str(log))["rates"].mean == pytest.approx(0.195, rel=0.05)
    assert parsed_rates("uniform(.1, .3)") == {"rates": cp.Uniform(0.1, 0.3)}
    assert cp.Market.alike(3, 2, 1000, rates=cp.Beta(2, 60)).agents[0].priors == (cp.Beta(2, 60),) * 2


def test_pages_of_several_places_have_the_reservoirs_on_pages():
    agents = [cp.Agent(name, 2, cp.Discrete([0.1, 0.4], [0.5, 0.5])) for name in ("ana", "bo", "cy")]
    market = cp.Market(agents, 20_000, positions=(1, 0.5))
    with ticking(0.0), without_long_questions():
        advised = cp.recommend(market, search=cp.Search(seconds=3))
    choice = advised.choice
    assert {each.name for each in advised.ranked} == {"reservoir", "reservoir-streams"}
    assert (choice.verdict, advised.fits) == ("clone-proof", True)
    sampled = cp.evaluate(market, choice.mechanism, search=cp.Search(runs=1000, bounds="asymptotic")).regret
    assert abs(choice.regret.value - sampled.value) < 2 * (choice.regret.error + sampled.error)
    assert (
        choice.regret.value < 0.05 * 20_000 * 0.55
    )  # one of three providers is in the last place in turn, whatever it earned
    assert all("2 of 3 providers" in each.seen for each in advised.ranked)
    assert "-20 to +30 %" in next(each.seen for each in advised.ranked if each.name == "reservoir-streams")
    assert "check identities" in str(advised)


def test_clicks_that_come_late_are_told_where_nothing_quick_plays_them() -> None:
    """The promise says what late rewards do to it; costs are then those of prompt ones, and say so."""
    given = {"agents": 6, "originals": 2, "horizon": 10_000, "values": (0.02, 0.05)}
    late = cp.Market.alike(**given, delays={"points": "50%=30m,95%=6h", "lasts": "30d"})
    advised, usual = (cp.recommend(market, search=cp.Search(seconds=2)) for market in (late, cp.Market.alike(**given)))
    assert "Rewards come late here" in advised.choice.promise
    assert "Costs are those of prompt rewards" in advised.choice.promise
    assert advised.cost.value == pytest.approx(usual.cost.value, rel=0.1)
