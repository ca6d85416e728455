"""Where an id is in the ledger: new ids in memory, old ones in generations."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cloneproof.serve.storage.id_generations import Generations, IdChunk, IdWords, hashes

SHIFT: Final = 40  # a place is the market's number times 2^40 plus the entry's


class Ids:
    """The ids of all markets; an id of an old generation is only a candidate, which its entry confirms."""

    def __init__(self, read: Callable[[int, int], IdChunk | None]) -> None:
        self.generations = Generations(read)
        self.forget_new()

    def forget_new(self) -> None:
        """What was new is in a generation now, or will be read from the ledger again."""
        self._new: dict[int, dict[str, int]] = {}
        self._frozen: dict[int, dict[str, int]] = {}  # the oldest of the new ones, of which a generation is being made
        self._frozen_count = 0
        self._values, self._places = array("Q"), array("q")
        self._hashed: dict[int, dict[str, int]] = {}  # what the last search had to hash, which is what is added next

    def candidates(self, market: int, names: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Names that are known, or may be, each with the number of its entry."""
        new, frozen, rest = self._new.get(market, {}), self._frozen.get(market, {}), []
        for name in names:
            number = new.get(name)
            if number is None and frozen:
                number = frozen.get(name)
            if number is None:
                rest.append(name)
            else:
                yield name, number
        if not rest:
            return
        values = hashes(market, rest)
        self._hashed[market] = dict(zip(rest, values.tolist(), strict=True))
        for which, place in self.generations.find(values):
            if place >> SHIFT == market:
                yield rest[which], place & ((1 << SHIFT) - 1)

    def add(self, market: int, pairs: Sequence[tuple[str, int]]) -> None:
        """Take in new ids with the numbers of their entries."""
        self._new.setdefault(market, {}).update(pairs)
        known, base = self._hashed.get(market, {}), market << SHIFT
        names = [name for name, _ in pairs]
        values = [known[name] for name in names if name in known]
        self._values.extend(values if len(values) == len(names) else hashes(market, names).tolist())
        self._places.extend([base + number for _, number in pairs])

    def new(self) -> tuple[IdWords, NDArray[np.int64]]:
        """Hashes and places of all new ids."""
        return np.array(self._values, np.uint64), np.array(self._places, np.int64)

    def freeze(self) -> tuple[IdWords, NDArray[np.int64]]:
        """Hashes and places of all ids that are new now, to be made into a generation while others come in."""
        for market, names in self._new.items():
            if market in self._frozen:
                self._frozen[market] |= names
            else:
                self._frozen[market] = names
        self._new, self._frozen_count = {}, len(self._values)
        return self.new()

    def forget_frozen(self) -> None:
        """The ids that were frozen are in a generation now."""
        self._frozen = {}
        del self._values[: self._frozen_count], self._places[: self._frozen_count]
        self._frozen_count = 0
