"""Which items of a table are the same: titles in, groups out, with the reason of each link. Needs no rewards."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from cloneproof._checks import number_in
from cloneproof._data import Data
from cloneproof._findings import NamedFinding, WithFindings
from cloneproof._groups import joined
from cloneproof._tables import Tabular
from cloneproof.analysis.copying.alike import different_texts
from cloneproof.analysis.copying.matching import THRESHOLD, TitleLink
from cloneproof.errors import LogError
from cloneproof.logs.columns import TITLES, guessed_column, named_column
from cloneproof.logs.sources import LogSource, log_source

MOST_NEAR: Final = 1_000  # pairs that were near, the nearest first
LEAST_MATCHED: Final = 3  # titles of two owners that match, for these to be candidates of one
MATCHED_SHARE: Final = 0.5  # of the smaller owner's titles


@dataclass(frozen=True)
class Item:
    """A row of the table: its number (from 1), whose it is, its texts by column, and whether it is of the catalogue."""

    row: int
    owner: str
    texts: Mapping[str, str]
    known: bool = False


@dataclass(frozen=True)
class LikeAccounts(Data):
    """Two owners whose titles match one to one: how many are the same, how many near, and of how many of the smaller.

    They may be one owner's accounts, or two shops that sell the same products. `pairs` are places of the items.
    """

    keys_of_data: ClassVar[tuple[str, ...]] = ("owners", "same", "near", "titles")

    owners: tuple[str, str]
    same: int
    near: int
    titles: int
    pairs: tuple[tuple[int, int], ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class SameItems(WithFindings, Tabular):
    """Items that are the same.

    Attributes
    ----------
    by, owner : tuple of str, str
        The columns of texts, and that of owners ("" without one).
    threshold : float
        The score from which on titles of two owners may be one item.
    items : tuple of Item
        The rows, new ones first and then those of the catalogue that they were compared with.
    groups : tuple of tuple of int
        Places of items that are joined by links, two or more each, the largest first.
    links, near : tuple of TitleLink
        The pairs that are the same, by their places in `items`, and those that reach the threshold and are not, with
        what speaks against it.
    accounts : tuple of LikeAccounts
        Owners whose titles match one to one.
    known : mapping, optional
        Which groups a person has accepted, by id.
    """

    said_in: ClassVar[str] = "same"
    keys_of_data: ClassVar[tuple[str, ...]] = (
        "by", "owner", "threshold", "rows", "findings=finding_rows", "groups=group_rows", "links=link_rows",
        "near=near_rows", "accounts",
    )  # fmt: skip

    by: tuple[str, ...]
    owner: str
    threshold: float
    items: tuple[Item, ...]
    groups: tuple[tuple[int, ...], ...]
    links: tuple[TitleLink, ...]
    near: tuple[TitleLink, ...]
    accounts: tuple[LikeAccounts, ...]

    @property
    def rows(self) -> int:
        return len(self.items)

    @property
    def named(self) -> tuple[NamedFinding, ...]:
        """The groups, by owners and texts: a row's number may change."""
        return tuple(NamedFinding("item", self.described(group)) for group in self.groups)

    def described(self, group: Sequence[int]) -> tuple[tuple[str, ...], ...]:
        """Return the owner and the texts of each item of a group."""
        return tuple((item.owner, *item.texts.values()) for item in map(self.items.__getitem__, group))

    @property
    def group_rows(self) -> list[list[dict[str, Any]]]:
        """Groups as data, an item each."""
        return [[self._named(place) for place in group] for group in self.groups]

    @property
    def link_rows(self) -> list[dict[str, Any]]:
        return [self._linked(link) for link in self.links]

    @property
    def near_rows(self) -> list[dict[str, Any]]:
        return [self._linked(link) for link in self.near]

    def _named(self, place: int) -> dict[str, Any]:
        item = self.items[place]
        named = {"row": item.row, "owner": item.owner, **item.texts}
        return named | ({"known": True} if item.known else {})

    def _linked(self, link: TitleLink) -> dict[str, Any]:
        return {
            "one": self._named(link.one), "other": self._named(link.other), "score": link.score, "reason": link.reason
        }  # fmt: skip

    def to_columns(self) -> dict[str, list[Any]]:
        """Return a row for each item of a group, with its nearest link."""
        best: dict[int, tuple[float, int, str]] = {}
        for link in sorted(self.links, key=lambda link: (link.score, -link.one, -link.other)):  # the best is last
            for place, partner in ((link.other, link.one), (link.one, link.other)):
                best[place] = link.score, partner, link.reason
        rows = [(number, place) for number, group in enumerate(self.groups, start=1) for place in group]
        columns: dict[str, list[Any]] = {
            "group": [number for number, _ in rows],
            "row": [self.items[place].row for _, place in rows],
            "known": [self.items[place].known for _, place in rows],
            "owner": [self.items[place].owner for _, place in rows],
        }
        columns |= {name: [self.items[place].texts.get(name, "") for _, place in rows] for name in self.by}
        columns |= {"like": [self.items[best[place][1]].row for _, place in rows]}
        columns |= {"score": [best[place][0] for _, place in rows], "reason": [best[place][2] for _, place in rows]}
        return columns


def same_items(
    table: object,
    by: str | Sequence[str] = (),
    owner: str | None = None,
    *,
    against: object = None,
    threshold: float = THRESHOLD,
) -> SameItems:
    """Find the items of a table that are the same, by their texts.

    Parameters
    ----------
    table : str, Path, data frame or mapping
        A CSV, Parquet or JSON-lines file, a data frame, or columns by name.
    by : str or sequence of str, optional
        The columns of texts, such as ("title", "url"); without any, a column called title or name.
    owner : str, optional
        The column of shops, sellers or agents; without one, all items are one owner's.
    against : str, Path, data frame or mapping, optional
        A catalogue with the same columns: only links of the table's rows are looked for.
    threshold : float, default 0.4
        The score from which on titles of two owners may be one item; 1 for the same words.

    Returns
    -------
    SameItems
        Groups, links with their reasons, and pairs that are near.

    Examples
    --------
    >>> mugs = {"title": ["Stone mug", "NEW: stone mug", "Stone jug"], "shop": ["ana", "ana", "bo"]}
    >>> found = same_items(mugs, by="title", owner="shop")
    >>> found.groups, found.links[0].reason
    (((0, 1),), 'title: the same words; filler: new')
    """
    at_least = number_in(threshold, "the threshold", 0, 1, low_open=True)
    source = log_source(table)
    names = _columns(source, by)
    items = _items(source, names, owner, known=False)
    new = len(items)
    if against is not None:
        items += _items(log_source(against), names, owner, known=True)
    owners = [item.owner for item in items]
    same, near = item_links([item.texts for item in items], owners, names, at_least)
    same, near = ([link for link in links if link.one < new] for links in (same, near))
    groups = [group for group in joined(len(items), [(link.one, link.other) for link in same]) if len(group) > 1]
    groups.sort(key=lambda group: (-len(group), group))
    return SameItems(
        names, owner or "", at_least, tuple(items), tuple(groups), tuple(same), tuple(near[:MOST_NEAR]),
        account_candidates(owners, same, near),
    )  # fmt: skip


def item_links(
    features: Sequence[Mapping[str, object]], owners: Sequence[str], names: Sequence[str], threshold: float = THRESHOLD
) -> tuple[list[TitleLink], list[TitleLink]]:
    """Return the items that are the same in one of their texts, and those that are near, the nearest first."""
    links: dict[bool, dict[tuple[int, int], TitleLink]] = {True: {}, False: {}}
    for name in names:
        values = {place: own.get(name) for place, own in enumerate(features)}
        texts = {place: text for place, text in values.items() if isinstance(text, str)}
        for first, second, link in different_texts(texts, owners, threshold).pairs(texts):
            pair = min(first, second), max(first, second)
            named = TitleLink(*pair, link.score, link.same, f"{name}: {link.reason}")
            links[link.same][pair] = max(named, links[link.same].get(pair, named))
    near = [link for pair, link in links[False].items() if pair not in links[True]]
    return sorted(links[True].values()), sorted(near, key=lambda link: (-link.score, link.one, link.other))


def account_candidates(
    owners: Sequence[str], same: Sequence[TitleLink], near: Sequence[TitleLink]
) -> tuple[LikeAccounts, ...]:
    """Return the pairs of owners whose titles match item by item, also where single links are only near.

    Titles are matched one to one, the same ones first and then the nearest. Three have to match, and half of the titles
    of the owner who has fewer.

    >>> links = [TitleLink(k, k + 3, 1.0, True, "") for k in range(2)]
    >>> account_candidates(["lamps"] * 3 + ["lamps outlet"] * 3, links, [TitleLink(2, 5, 0.6, False, "")])
    (LikeAccounts(owners=('lamps', 'lamps outlet'), same=2, near=1, titles=3),)
    """
    sizes = Counter(owners)
    taken: dict[tuple[str, str], set[int]] = defaultdict(set)
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    pairs: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for kind, links in enumerate((same, near)):
        for link in links:
            one, other = owners[link.one], owners[link.other]
            between = (one, other) if one < other else (other, one)
            if one != other and taken[between].isdisjoint((link.one, link.other)):
                taken[between].update((link.one, link.other))
                counts[between][kind] += 1
                pairs[between].append((link.one, link.other))
    candidates = [
        LikeAccounts(between, matched[0], matched[1], min(sizes[owner] for owner in between), tuple(pairs[between]))
        for between, matched in counts.items()
        if matched[0] and sum(matched) >= max(LEAST_MATCHED, MATCHED_SHARE * min(sizes[owner] for owner in between))
    ]
    return tuple(sorted(candidates, key=lambda one: (-one.same - one.near, one.owners)))


def _columns(source: LogSource, by: str | Sequence[str]) -> tuple[str, ...]:
    wanted = (by,) if isinstance(by, str) else tuple(by)
    if wanted:
        return tuple(named_column(list(source.columns), "by", name) for name in wanted)
    title = guessed_column(TITLES, list(source.columns))
    if title is None:
        raise LogError(f"expected a column of titles, got none called {' or '.join(TITLES)}; name it in by")
    return (title,)


def _items(source: LogSource, names: Sequence[str], owner: str | None, *, known: bool) -> list[Item]:
    wanted = [named_column(list(source.columns), "by", name) for name in names]
    wanted += [named_column(list(source.columns), "owner", owner)] if owner else []
    listed = ", ".join(f"CAST({source.columns[name].sql} AS VARCHAR)" for name in wanted)
    return [
        Item(
            number,
            (row[-1] or "").strip() if owner else "",
            {name: text for name, text in zip(names, row, strict=False) if text and text.strip()},
            known,
        )
        for number, row in enumerate(source.query(f"SELECT {listed} FROM {source.rows}"), start=1)
    ]
