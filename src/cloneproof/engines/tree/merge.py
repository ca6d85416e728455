"""States that have the same future become one.

Copies of one original are exchangeable, so are originals of one owner with the same prior and the same number of
copies, and owners whose originals are (if agents are not explored in the order of registration: their payoffs then
differ). Blocks are sorted downwards, pulls first: exploration in the order of registration pulls earlier arms first,
so sorting never takes a turn from an arm that has it. A restart that lets arms be explored in that order once more is
the exception: then originals stay where they are registered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.engines.tree.beliefs import Ints
from cloneproof.engines.tree.shape import Shape, States

StateBlock = list[int]
FEW = 4  # blocks that are quickly sorted by exchanges


class Symmetry:
    """The exchangeable blocks of a shape, innermost first, and which owners are alike."""

    def __init__(self, shape: Shape) -> None:
        self.families: list[list[StateBlock]] = []
        for o in range(len(shape.originals)):
            self._add([_rows(shape, [("pulls", a), ("sum", a), ("chosen", a)]) for a in shape.arms_of(o)])
        # an award clears the pulls: exploration by index would then start with whom the sorting put first
        anew = shape.mechanism.arm.order == "index" and shape.mechanism.clearing.at_award
        for owner in range(0 if anew else shape.owners):
            originals = [o for o, original in enumerate(shape.originals) if original.owner == owner]
            for group in _alike(originals, [shape.originals[o] for o in originals]):
                self._add([_original_block(shape, o) for o in group])
        level = shape.mechanism.arm if shape.flat else shape.mechanism.agent
        assert level is not None
        kinds: list[object] = [
            (tuple((o.belief, o.copies) for o in shape.originals if o.owner == owner), shape.registered[owner])
            for owner in range(shape.owners)
        ]
        self.owners = [[i] for i in range(shape.owners)]
        if level.order != "index":
            self.owners = _alike(list(range(shape.owners)), kinds)
            for group in self.owners:
                self._add([shape.rows_of_owner(owner) for owner in group])

    def _add(self, blocks: list[StateBlock]) -> None:
        if len(blocks) > 1 and blocks[0]:
            self.families.append(blocks)

    def sort(self, states: States) -> None:
        """Bring every state into its canonical form, in place."""
        for blocks in self.families:
            if len(blocks) > FEW and _sorted_as_words(states, blocks):
                continue
            for last in range(len(blocks) - 1, 0, -1):
                for k in range(last):
                    _order(states, blocks[k], blocks[k + 1])


def count_states(shape: Shape, rounds: int) -> FloatArray:
    """How many states there are after 0, 1, .. rounds of an arm each, if every pull and every success can be.

    An arm with n pulls has n + 1 numbers of successes. The series of m exchangeable things is h_m of that of one:
    m h_m(z) = sum over k from 1 to m of f(z^k) h_(m - k)(z), which counts multisets (Polya).
    """
    arm = np.arange(1.0, rounds + 2)
    kinds, series = [], []
    for owner in range(shape.owners):
        own = tuple((o.belief, o.copies) for o in shape.originals if o.owner == owner)
        kinds.append((own, shape.registered[owner]))
        total = _power(arm, 0)
        for (_, copies), number in Counter(own).items():
            total = np.convolve(total, _power(_power(arm, copies), number))[: rounds + 1]
        series.append(total)
    level = shape.mechanism.arm if shape.flat else shape.mechanism.agent
    owners, alike = list(range(shape.owners)), level is not None and level.order != "index"
    whole = _power(arm, 0)
    for group in _alike(owners, kinds if alike else owners):
        whole = np.convolve(whole, _power(series[group[0]], len(group)))[: rounds + 1]
    return np.asarray(whole)


def _power(series: FloatArray, number: int) -> FloatArray:
    """The series of multisets of so many."""
    length = len(series)
    multisets = [np.zeros(length)]
    multisets[0][0] = 1.0
    spaced = [np.zeros(length) for _ in range(number + 1)]
    for k in range(1, number + 1):
        spaced[k][::k] = series[: len(spaced[k][::k])]
    for m in range(1, number + 1):
        terms = [np.convolve(spaced[k], multisets[m - k])[:length] for k in range(1, m + 1)]
        multisets.append(np.sum(terms, axis=0) / m)
    return multisets[number]


def _rows(shape: Shape, names: Sequence[tuple[str, int]]) -> StateBlock:
    return [row for name in names if (row := shape.row(*name)) is not None]


def _original_block(shape: Shape, original: int) -> StateBlock:
    arms = shape.arms_of(original)
    names = [(name, a) for name in ("pulls", "sum", "chosen") for a in arms]
    return _rows(shape, [*names, ("observations", original), ("successes", original)])


def _alike(items: list[int], kinds: Sequence[object]) -> list[list[int]]:
    groups: dict[object, list[int]] = {}
    for item, kind in zip(items, kinds, strict=True):
        groups.setdefault(kind, []).append(item)
    return list(groups.values())


def _sorted_as_words(states: States, blocks: list[StateBlock]) -> bool:
    """Sort blocks as one integer each, if they fit into one."""
    places = [[block[k] for block in blocks] for k in range(len(blocks[0]))]
    widths = [int(states[rows].max()).bit_length() for rows in places]
    if sum(widths) > 63:
        return False
    words = np.zeros((len(blocks), states.shape[1]), dtype=np.int64)
    for rows, width in zip(places, widths, strict=True):
        words = (words << width) | states[rows]
    words = -np.sort(-words, axis=0)
    for rows, width in zip(reversed(places), reversed(widths), strict=True):
        states[rows] = words & ((1 << width) - 1)
        words >>= width
    return True


def _order(states: States, first: StateBlock, second: StateBlock) -> None:
    """Swap the blocks wherever the first is the smaller, row by row."""
    smaller = np.zeros(states.shape[1], dtype=bool)
    for a, b in zip(reversed(first), reversed(second), strict=True):
        smaller = (states[a] < states[b]) | ((states[a] == states[b]) & smaller)
    swap = np.flatnonzero(smaller)
    if len(swap):
        for a, b in zip(first, second, strict=True):
            kept = states[a, swap]
            states[a, swap] = states[b, swap]
            states[b, swap] = kept


def merge_states(states: States, weights: FloatArray) -> tuple[States, FloatArray, int]:
    """Equal columns as one, their weights added; and the most columns that became one. Weights of 0 go."""
    if not weights.all():
        some = np.flatnonzero(weights)
        states, weights = states[:, some], weights[some]
    if len(weights) < 2:
        return states, weights, 1
    words = _words(states)
    order = np.argsort(words[0]) if len(words) == 1 else np.lexsort(words)
    new = np.zeros(len(order), dtype=bool)
    new[0] = True
    for word in words:
        ranked = word[order]
        new[1:] |= ranked[1:] != ranked[:-1]
    starts = np.flatnonzero(new)
    most = int(np.diff(starts, append=len(order)).max())
    return states[:, order[starts]], np.add.reduceat(weights[order], starts), most


def _words(states: States) -> list[Ints]:
    """Each state as one integer, or as few as its numbers fit into."""
    words: list[Ints] = []
    used = 64
    for row in states:
        bits = int(row.max()).bit_length()
        if bits == 0:
            continue
        if used + bits > 63:
            words.append(row.astype(np.int64))
            used = bits
        else:
            words[-1] = (words[-1] << bits) | row
            used += bits
    return words or [np.zeros(states.shape[1], dtype=np.int64)]
