"""Batches, and calls that are taken together: the same as one call after the other, whatever is repeated or wrong."""

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from cloneproof.serve.api.messages import RewardItem
from cloneproof.serve.commit.commands import Do
from cloneproof.serve.commit.decide import Decide
from cloneproof.serve.commit.grouping import merge
from cloneproof.serve.commit.markets import ServedMarkets
from cloneproof.serve.commit.reward import Reward
from cloneproof.serve.commit.settle import Settle
from cloneproof.serve.ledger.entries import decode
from support.service import spec

REQUESTS = st.lists(st.sampled_from([f"r{n}" for n in range(60)]), min_size=1, max_size=20)
ITEMS = st.lists(
    st.builds(
        RewardItem,
        st.sampled_from([f"e{n}" for n in range(40)]),
        st.integers(1, 45),
        st.sampled_from([0.0, 1.0, 0.3, 0.25, 7.0]),
    ),
    min_size=1,
    max_size=20,
)
COMMANDS = st.lists(
    st.one_of(st.builds(Decide, st.just("m"), REQUESTS), st.builds(Reward, st.just("m"), ITEMS)), max_size=12
)


def opened(horizon):
    markets = ServedMarkets()
    market, _ = markets.create(spec(market="m", horizon=horizon, wait_seconds=1.0), 1000)
    for agent in ("ana", "bo"):
        market.register_agent(agent, 1000)
        market.register_arm(agent, f"{agent}-0", 1000)
        market.register_arm(agent, f"{agent}-1", 1000)
    market.start(1000)
    return markets, market


def singles(command):
    if isinstance(command, Decide):
        return [Decide(command.market, [one]) for one in command.requests]
    return [Reward(command.market, [one]) for one in command.items]


def told(markets):
    """What the ledger says, whatever the order inside a batch."""
    lines = [decode(line) for _, _, new in markets.take() for line in new.lines]
    return sorted((type(one).__name__, *(v for k, v in _fields(one) if k != "n")) for one in lines[1:])


def _fields(entry):
    return [(name, repr(getattr(entry, name))) for name in entry.__struct_fields__]


@given(commands=COMMANDS, horizon=st.sampled_from([10, 50]), late=st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_batch_is_its_items_one_by_one(commands, horizon, late):
    (one, market), (many, other) = opened(horizon), opened(horizon)
    known_one, known_many = defaultdict(dict), defaultdict(dict)
    for step, command in enumerate(commands):
        now = 2000 + (600 * step if late else 0)
        for markets, known in ((one, known_one), (many, known_many)):
            markets.expire(now, known)
        singly = [single.run(one, known_one, now)[0] for single in singles(command)]
        assert command.run(many, known_many, now) == singly
        assert market.registry.to_dict() == other.registry.to_dict()
        assert market.session.to_json() == other.session.to_json()
    assert told(one) == told(many)


@given(commands=COMMANDS)
@settings(max_examples=40, deadline=None)
def test_calls_that_are_taken_together_get_the_replies_of_some_order(commands):
    """Decisions first or rewards first, as they came: in that order, one by one, each gets what it was told."""
    (one, _), (many, _) = opened(50), opened(50)
    known_one, known_many = defaultdict(dict), defaultdict(dict)
    together = list(merge(commands))
    assert sorted(at for _, positions in together for at in positions) == list(range(len(commands)))
    assert len(together) <= 2
    for command, positions in together:
        replies = command.run(many, known_many, 2000)
        singly = [reply for at in positions for reply in commands[at].run(one, known_one, 2000)]
        assert replies == singly
    assert told(one) == told(many)


def test_what_is_no_decision_and_no_reward_keeps_its_place():
    act, first, second = Do("m", lambda markets, now: None), Decide("m", ["a"]), Decide("m", ["b"])
    elsewhere = Decide("k", ["c"])
    assert list(merge([first, act, second, elsewhere])) == [
        (first, [0]),
        (act, [1]),
        (second, [2]),
        (elsewhere, [3]),
    ]
    assert list(merge([first, elsewhere, second, act])) == [
        (Decide("m", ["a", "b"]), [0, 2]),
        (elsewhere, [1]),
        (act, [3]),
    ]


def test_a_reward_that_comes_with_the_settlement_is_late():
    """Looked up when its decision still waited: it must meet the default all the same, and be told what a retry is."""
    markets, market = opened(10)
    known = defaultdict(dict)
    made = Decide("m", ["r"]).run(markets, known, 2000)[0].decision
    assert Settle("m", lambda one: one.state).run(markets, known, 2000) == "settled"
    first, again = (Reward("m", [RewardItem("e", made, 1.0)]).run(markets, known, 2000)[0] for _ in range(2))
    assert (first.result, again.result) == ("late", "duplicate")
    assert sum(one.balance for one in market.registry.agents.values()) == 0
