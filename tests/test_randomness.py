"""The hash behind every random number: known bits, and no visible pattern."""

import math

import numpy as np
import pytest

import cloneproof as cp
from cloneproof._lib.randomness import substream, uniform, word
from cloneproof.errors import CloneproofError


def test_the_bits_are_those_of_splitmix64():
    """Stream 0 is the published sequence of splitmix64 seeded with 0."""
    assert [word(0, i) for i in range(3)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


@pytest.mark.parametrize("stream", [5, b"5" * 32], ids=["integer", "key"])
def test_numbers_are_uniform_and_uncorrelated(stream):
    """Kolmogorov-Smirnov and serial correlation, each with an error rate below one in a million."""
    count = 20_000
    numbers = np.array([uniform(substream(stream, 7), i) for i in range(count)])
    assert 0 < numbers.min() < numbers.max() < 1
    distance = np.abs(np.sort(numbers) - (np.arange(count) + 0.5) / count).max()
    assert distance < math.sqrt(math.log(2 / 1e-6) / (2 * count))
    neighbours = np.array([uniform(substream(stream, 7 + i), 0) for i in range(count)])
    for first, second in ((numbers[1:], numbers[:-1]), (numbers, neighbours)):
        assert abs(np.corrcoef(first, second)[0, 1]) < 5 / math.sqrt(count)


KEYED = [
    cp.mechanism("h-etc-r", agent_rounds=6, arm_rounds=2),
    cp.mechanism("reservoir", rounds=4, draws=3, threshold=3),
    cp.mechanism("thompson"),
]


@pytest.mark.parametrize("mechanism", KEYED, ids=str)
def test_a_session_with_a_key_goes_on_from_its_text(mechanism):
    """It decides as a session does, another key decides otherwise, and the saved text goes on identically."""

    def decisions(seed, saved):
        live = cp.session(mechanism, {"ana": 3, "bo": 2, "cy": 1}, horizon=200, seed=seed)
        for number in range(200):
            if number == saved:
                live = cp.Session.from_json(live.to_json())
            decision = live.decide()
            live.reward(decision.id, float((number * 7 + decision.arm) % 3 == 0))
            yield decision

    once, again, other = (list(decisions(*how)) for how in [(b"a" * 32, None), (b"a" * 32, 77), (b"b" * 32, None)])
    assert once == again != other
    with pytest.raises(CloneproofError, match="seed"):
        cp.session(mechanism, {"ana": 1}, horizon=5, seed=b"short")
