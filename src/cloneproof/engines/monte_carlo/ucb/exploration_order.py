"""Who is explored when, and which arms are sampled: sorting by hash, in time proportional to the number of arms."""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201 (compiled functions are typed by their arguments)

from __future__ import annotations

import numpy as np

from cloneproof.engines.monte_carlo.compiled_functions import compiled
from cloneproof.engines.monte_carlo.randomness.compiled_hash import word

_ZERO = np.uint64(0)


@compiled
def sort_for_exploration(stream, keys, order):
    """Write candidates 0, 1, .. into `order`, sorted by `word(word(stream, key), 0)` as a level's queue sorts them.

    Hashes are uniform, so dealing them into as many buckets as there are candidates and inserting within a bucket
    takes linear time; a comparison sort of thousands of arms would cost as much as playing them.
    """
    count = len(keys)
    if count == 1:
        order[0] = 0
        return
    shift = np.uint64(63)
    while (1 << (64 - np.int64(shift))) < count:
        shift -= np.uint64(1)
    ends = np.zeros((1 << (64 - np.int64(shift))) + 1, np.int64)
    hashes = np.empty(count, np.uint64)
    for k in range(count):
        hashes[k] = word(word(stream, keys[k]), _ZERO)
        ends[np.int64(hashes[k] >> shift) + 1] += 1
    for b in range(1, len(ends)):
        ends[b] += ends[b - 1]
    filled = ends[:-1].copy()
    for k in range(count):
        bucket = np.int64(hashes[k] >> shift)
        place = filled[bucket]
        filled[bucket] += 1
        while place > ends[bucket] and hashes[order[place - 1]] > hashes[k]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = k


@compiled
def sample_by_hash(stream, keys, size, kept):
    """Write the `size` candidates of smallest `word(stream, key)` into `kept`, in the order of the candidates."""
    least = np.empty(size, np.uint64)
    held = 0
    for k in range(len(keys)):
        value = word(stream, keys[k])
        if held == size and value >= least[size - 1]:
            continue
        place = held if held < size else size - 1
        while place > 0 and least[place - 1] > value:
            least[place] = least[place - 1]
            kept[place] = kept[place - 1]
            place -= 1
        least[place] = value
        kept[place] = k
        held = min(held + 1, size)
    kept[:size].sort()
