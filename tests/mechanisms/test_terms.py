"""For how many agents a session can start: by the definition, number by number, and by opening it."""

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
    turns = dice.choice([None, None, dice.randint(1, 60)])
    streams = cp.mechanism("reservoir-streams", rotations=rotations, blocks=blocks, turns=turns)
    attention = tuple(1 / place for place in range(1, places + 1))

    def fits(agents):
        """The last block ends, and its verdict falls, N rotations after it began; verdicts are not too frequent."""
        filled = min(places, agents)
        last = rotations * (agents - 1 + (blocks - 1) * agents) + rotations * agents
        often = turns is not None and turns * attention[filled - 1] < rotations * sum(attention[:filled]) - 1e-9
        ranked = places == 1 < agents  # whose clicks count in the laboratory alone
        return rotations % batch == 0 and all(last <= own for own in rounds) and (not often or ranked)

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
    streams, segments = cp.mechanism("reservoir-streams", rotations=4, blocks=8), {"desk": 0.9, "phone": 0.1}
    terms = Terms(1000, segments=segments, positions=(1.0, 0.5), batch=4)
    assert refusal(streams, replace(terms, agents=12)) == (
        "in segment 'phone': expected a laboratory that ends within 100 pages, got one of 428 for 12 agents; give "
        "blocks of at most 1, or let up to 2 agents take part"
    )
    assert refusal(streams, replace(terms, batch=3)) == (
        "in segment 'desk': expected verdicts between batches, got rotations=4 and batches of 3; give rotations that "
        "are a multiple of 3"
    )
    assert refusal(cp.mechanism("reservoir-streams", rotations=4, blocks=8, turns=11), replace(terms, agents=2)) == (
        "in segment 'desk': expected turns=12 at least for 2 agents on these places, as joining late would pay with "
        "fewer, got 11; give more, or leave turns out"
    )
    assert refusal(streams, terms, quota=2) is None
    assert refusal(streams, replace(terms, horizon=300), quota=50).startswith("no number of agents up to 50 can start")


@pytest.mark.parametrize(("agents", "places", "fits"), [(3, 2, True), (2, 2, False), (3, 1, False), (4, 3, True)])
def test_guests_join_where_there_are_more_agents_than_places(agents, places, fits):
    streams = cp.mechanism("reservoir-streams", rotations=2, blocks=3)
    registered = {f"agent {number}": 2 for number in range(agents)}
    live = cp.session(streams, registered, 40, positions=[1 / place for place in range(1, places + 1)], batch=2)
    live.decide_slate()
    before = live.to_json()
    if fits:  # at any time, however many, as their laboratories change nobody's
        for number in range(8):
            live.join(f"joiner {number}", 1)
            live.decide_slate()
        assert cp.Session.from_json(live.to_json()).decide_slate() == live.decide_slate()
        return
    with pytest.raises(SessionError, match="expected more agents than places, and two of these"):
        live.join("new", 3)
    assert live.to_json() == cp.Session.from_json(before).to_json() == before
    assert live.decide_slate() == cp.Session.from_json(before).decide_slate()


def test_an_evaluation_asks_for_the_places_of_each_segment():
    agents, two = [cp.Agent("ana", 2, cp.Uniform())], {"desk": 0.9, "phone": 0.1}
    etc = cp.mechanism("etc", arm_rounds=2)
    assert refusal(etc, Terms.of(cp.Market(agents, 100, segments=two))) is None
    pages = cp.Market(agents, 100, segments=two, positions={"desk": [1], "phone": [1, 0.5]})
    assert "takes no positions" in (refusal(etc, Terms.of(pages)) or "")
