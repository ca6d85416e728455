"""The hash behind every random number: known bits, and no visible pattern."""

import math

import numpy as np
import pytest

from cloneproof._lib.randomness import substream, uniform, word


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
