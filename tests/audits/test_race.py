"""Search, then confirm: what is sampled, at which level, and what is said of it."""

import re

import pytest

import cloneproof as cp
from cloneproof.audits import race_state
from cloneproof.audits.gain import sampled_gain
from cloneproof.audits.question import audit_case, audit_cases
from cloneproof.audits.race import in_order, race
from cloneproof.audits.race_state import RaceEntry, confirmation_level
from cloneproof.report.words import verdict_sentence
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.sampler import kernel_outcomes
from support.black_box_policies import InTurn

# with posteriors to draw from, the tree goes up to some 80 rounds of two arms; from there on everything is sampled
PAIR = [cp.Agent("ana", 1, cp.Point(0.5)), cp.Agent("bo", 1, cp.Point(0.5))]


@pytest.fixture
def sampling(monkeypatch):
    calls = []

    def counted(market, mechanism, deviation, options):
        calls.append((deviation.agent, deviation.copies, options))
        return sampled_gain(market, mechanism, deviation, options)

    monkeypatch.setattr(race_state, "sampled_gain", counted)
    return calls


def test_a_sampled_weakness_is_found_with_confidence(sampling):
    search = cp.Search(runs=512, seed=7)
    found = cp.audit(cp.Market(PAIR, horizon=90), cp.mechanism("thompson"), agent="ana", search=search)
    assert found.verdict == "exploitable"
    assert found.worst.gain.kind == "confidence"
    assert found.worst.gain.low > 0
    assert "confidence sequence" in str(found.scope)
    levels = {(options.seed, copies): 1 - options.confidence for _, copies, options in sampling}
    assert sum(2 * level for level in levels.values()) <= 0.01 * (1 + 1e-9)  # a gain and an honest payoff each
    # the verdict rests on the pairs that made it look good, at the level of its rank, or on fresh ones at their own
    witness = next(sample for sample in found.samples if sample.copies == found.worst.copies)
    first = next(options for _, copies, options in sampling if copies == found.worst.copies)
    fresh = 1 - 0.01 / 2 * 2 / 3 / 2  # half of the level, 2/3 of that, for two
    assert witness.confidence == pytest.approx(first.confidence if witness.seed == 7 else fresh)
    assert sorted({options.confidence for _, _, options in sampling if options.seed == 7})[-1] < 1 - 1e-5


def test_large_rungs_come_early_and_agents_take_turns(sampling):
    cp.audit(cp.Market(PAIR, horizon=90), cp.mechanism("thompson"), search=cp.Search(runs=1), tolerance=100.0)
    looks = list(dict.fromkeys((agent, copies) for agent, copies, _ in sampling))
    assert [copies for _, copies in looks[:3]] == [(16,), (64,), (4,)]
    pair = [cp.Agent("ana", 1, cp.Point(0.5)), cp.Agent("bo", 1, cp.Point(0.6))]
    sampling.clear()
    cp.audit(cp.Market(pair, horizon=90), cp.mechanism("thompson"), search=cp.Search(runs=1), tolerance=100.0)
    assert [agent for agent, _, _ in sampling[:4]] == ["ana", "bo", "ana", "bo"]


def test_honest_runs_are_played_once_and_change_no_bit(monkeypatch):
    market, played = cp.Market(PAIR, horizon=40), []

    def counted(job, first, count):
        if all(numbers == (1,) for numbers in job.job.copies.values()):
            played.extend(range(first, first + count))
        return kernel_outcomes(job, first, count)

    case = audit_case(market, cp.mechanism("ucb1"), "ana")
    entries = [RaceEntry(case, (number,)) for number in (2, 3, 4)]
    found = race(entries, 100.0, cp.Search(runs=64), Deadline(), play=counted)
    assert sorted(played) == sorted(set(played))
    for copies, sample in found[0].samples.items():
        again = cp.gain(
            market, cp.mechanism("ucb1"), "ana", copies, search=cp.Search(runs=sample.progress.runs, seed=sample.seed),
            confidence=sample.confidence, stop_when_decided=False,
        )  # fmt: skip
        assert again.progress == sample.progress


def test_none_of_the_tried_pays_is_a_state_of_its_own():
    market = cp.Market(PAIR, horizon=90)
    found = cp.audit(market, cp.mechanism("thompson"), tolerance=5.0, agent="ana", search=cp.Search(copies=2, runs=256))
    assert (found.verdict, found.state) == ("undecided", "none tried pays")
    assert "gains more than 500 % of the honest payoff, at 99 %" in found.about_tried
    assert str(found.scope).startswith(found.about_tried)
    assert found.to_dict()["state"] == "none tried pays"
    assert "No attack was found" in verdict_sentence(found)
    short = cp.audit(market, cp.mechanism("thompson"), search=cp.Search(runs=4), agent="ana")
    assert (short.verdict, short.state) == ("undecided", "open")
    assert short.tried_at_most is not None
    assert short.tried_at_most > 0


def test_no_bound_is_beyond_what_can_be_earned():
    market = cp.Market([cp.Agent("ana", 1, cp.Point(0.25)), cp.Agent("bo", 1, cp.Point(0.5))], horizon=90)
    found = cp.audit(market, cp.mechanism("thompson"), agent="ana", search=cp.Search(runs=4))
    assert found.worst.gain.high > 90 * 0.25  # the interval itself knows the range of payoffs only
    assert all(one.gain_at_most <= 90 * 0.25 for one in found.tried)
    assert "a gain of up to 22.5 " in str(found.scope)


def test_an_argument_spares_the_samples(sampling):
    mechanism = cp.bandit(agent=cp.rule("uniform"), arm=cp.rule("thompson"))
    found = cp.audit(cp.Market(PAIR, horizon=24, rewards="beta"), mechanism, search=cp.Search(runs=4096))
    assert found.verdict == "clone-proof"
    assert sampling == []
    assert found.worst.gain.value == 0
    assert found.worst.gain.kind == "exact"


def test_a_good_guess_is_confirmed_by_samples(sampling, guessed_quadrature):
    market = cp.Market([cp.Agent("ana", 2, cp.Uniform(0, 1))], horizon=40)
    found = cp.audit(market, cp.mechanism("etc", arm_rounds=1), search=cp.Search(copies=2, runs=64))
    assert {one.gain.kind for one in found.tried} == {"exact", "confidence"}


def test_the_first_list_of_a_black_box_needs_no_fresh_pairs_and_the_levels_still_add_up():
    """Its look has the level of a first confirmation, so that what is confirmed later has those after it."""
    market = cp.Market([cp.Agent("ana", 1, cp.Point(0.5)), cp.Agent("bo", 2, cp.Point(0.5))], horizon=40)
    (case,) = audit_cases(market, cp.BlackBox(InTurn), ["ana"]).values()
    planned = [RaceEntry(case, (number,)) for number in range(2, 40)]
    first, *others = in_order(planned)
    assert first.copies == (5,)  # 2.5 times as many arms as bo has
    state = race_state.Race(0.0, 7, 0.01, [first, *others], 64, Deadline())
    assert state.look_level(first) == confirmation_level(0.01, 1)
    assert state.next_rank == 2
    later = sum(confirmation_level(0.01, rank) for rank in range(state.next_rank, 10**5))
    every = state.look_level(first) + later + sum(map(state.look_level, others))
    assert every < 0.01 * (race_state.HALF + race_state.LOOKS)
    state.evaluate(race_state.Draw(first, 8))
    assert state.looks[first].sample.seed == 7
    assert 1 - state.looks[first].sample.confidence == pytest.approx(confirmation_level(0.01, 1) / 2)


@pytest.mark.parametrize("rank", [1, 2, 30, 500])
def test_every_confirmation_has_a_level_that_a_float_can_state(rank):
    assert 1.0 - (1.0 - confirmation_level(0.01, rank) / 2) == pytest.approx(
        confirmation_level(0.01, rank) / 2, rel=1e-6
    )


def test_what_would_settle_it_settles_it():
    """Twice the pairs that an undecided audit names, from another seed, show the gain that it names."""
    market = cp.Market([cp.Agent(name, 2, cp.Uniform(0.01, 0.04)) for name in ("ana", "bo", "cy")], horizon=2000)
    found = cp.audit(market, cp.mechanism("thompson"), agent="ana", search=cp.Search(runs=16))
    said = re.match(
        r"More pairs of runs would settle it: if copies \((\d+), (\d+)\) gain .* seems, ([\d,]+) fresh ones", found.more
    )
    assert found.verdict == "undecided"
    *copies, pairs = (int(number.replace(",", "")) for number in said.groups())
    again = cp.gain(market, found.mechanism, "ana", tuple(copies), search=cp.Search(runs=2 * pairs, seed=5))
    assert again.decided == "pays"
