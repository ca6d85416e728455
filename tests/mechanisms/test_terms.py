"""For how many agents a session can start: by the definition, number by number, and by opening it."""

import math
import random
from dataclasses import replace

import pytest

import cloneproof as cp
from cloneproof.errors import MechanismError, SessionError
from cloneproof.mechanisms.terms import Terms, refusal

MOST = 24


def drawn_terms(dice):
    """Random terms of streams on pages; and whether so many agents can start, by the definition of the blocks."""
    horizon, batch = dice.choice([30, 100, 400]), dice.choice([1, 1, 2, 3, 4, 6])
    segments = dice.choice([{}, {"desk": 0.9, "phone": 0.1}])
    places, rotations, blocks = dice.randint(1, 6), dice.randint(1, 4), dice.randint(1, 6)
    rounds = [max(1, round(part * horizon)) for part in segments.values()] or [horizon]
    streams = cp.mechanism("reservoir-streams", rotations=rotations, blocks=blocks)

    def fits(agents):
        whole = (rotations * agents) % batch == 0
        return whole and all(agents * rotations * blocks <= own for own in rounds)

    attention = tuple(1 / place for place in range(1, places + 1))
    return streams, Terms(horizon, segments=segments, positions=attention, batch=batch), fits


@pytest.mark.parametrize("seed", range(60))
def test_a_session_opens_for_the_numbers_of_agents_that_fit(seed):
    streams, terms, fits = drawn_terms(random.Random(seed))
    fitting = [agents for agents in range(1, MOST + 1) if fits(agents)]
    declared = refusal(streams, terms, MOST)
    assert (declared is None) == bool(fitting)
    for agents in range(1, MOST + 1):
        why = refusal(streams, replace(terms, agents=agents))
        assert (why is None) == fits(agents)
        options = {"positions": terms.positions, "batch": terms.batch, "segments": terms.segments or None}
        registered = {f"agent {number}": 1 for number in range(agents)}
        if why is not None:
            with pytest.raises(MechanismError) as found:
                cp.session(streams, registered, terms.horizon, **options)
            assert str(found.value) == why
        else:
            live = cp.session(streams, registered, terms.horizon, **options)
            for name in terms.parts:
                assert live.decide_slate(name)


def test_a_refusal_names_what_would_fit():
    streams, segments = cp.mechanism("reservoir-streams", rotations=2, blocks=8), {"desk": 0.9, "phone": 0.1}
    terms = Terms(1000, segments=segments, positions=(1.0, 0.5), batch=4)
    assert refusal(streams, replace(terms, agents=12)) == (
        "in segment 'phone': expected a laboratory that ends within 100 pages, got one of 192 for 12 agents; give "
        "rotations of at most 1 or blocks of at most 4, or let a multiple of 2 agents take part"
    )
    assert refusal(streams, replace(terms, agents=5)) == (
        "in segment 'desk': expected blocks of whole batches, got rotations=2 for 5 agents and batches of 4; give "
        "rotations that are a multiple of 4, or batches that divide 10, or let a multiple of 2 agents take part"
    )
    assert refusal(streams, terms, quota=2) is None
    assert refusal(streams, replace(terms, horizon=300), quota=50).startswith("no number of agents up to 50 can start")


@pytest.mark.parametrize(("rotations", "agents", "batch"), [(2, 3, 3), (7, 16, 14), (1, 4, 2)])
def test_who_would_break_whole_batches_cannot_join_and_the_session_goes_on(rotations, agents, batch):
    streams = cp.mechanism("reservoir-streams", rotations=rotations, blocks=3)
    registered = {f"agent {number}": 2 for number in range(agents)}
    live = cp.session(streams, registered, 2000, positions=[1, 0.5], batch=batch)
    live.decide_slate()
    before = live.to_json()
    with pytest.raises(SessionError, match="expected blocks of whole batches, got"):
        live.join("new", 3)
    assert live.to_json() == cp.Session.from_json(before).to_json() == before
    assert live.decide_slate() == cp.Session.from_json(before).decide_slate()


@pytest.mark.parametrize("batch", [1, 2, 4])
def test_after_those_joins_that_are_taken_a_session_can_be_read(batch):
    live = cp.session(
        cp.mechanism("reservoir-streams", rotations=2, blocks=4),
        {"ana": 2, "bo": 1},
        60,
        positions=[1, 0.5],
        batch=batch,
    )
    taken = 0
    for number in range(8):
        live.decide_slate()
        try:
            live.join(f"joiner {number}", 1)
            taken += 1
        except SessionError:
            continue
        assert cp.Session.from_json(live.to_json()).decide_slate()
    assert taken == (
        5 if math.gcd(batch, 4) < 4 else 0
    )  # 60 pages are seven blocks of 8; batches of 4 need even numbers


def test_an_evaluation_asks_for_the_places_of_each_segment():
    agents, two = [cp.Agent("ana", 2, cp.Uniform())], {"desk": 0.9, "phone": 0.1}
    etc = cp.mechanism("etc", arm_rounds=2)
    assert refusal(etc, Terms.of(cp.Market(agents, 100, segments=two))) is None
    pages = cp.Market(agents, 100, segments=two, positions={"desk": [1], "phone": [1, 0.5]})
    assert "takes no positions" in (refusal(etc, Terms.of(pages)) or "")
