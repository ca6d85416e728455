"""Which items of a table are the same: columns in, links and groups out, with a stated share of errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, get_args

import numpy as np

from cloneproof._lib.checks import number_in
from cloneproof._lib.data import Data
from cloneproof._lib.findings import NamedFinding, WithFindings
from cloneproof._lib.sources import LogSource, guessed_column, log_source, named_column
from cloneproof._lib.tables import Tabular
from cloneproof.errors import LogError, brief
from cloneproof.logs.columns import TITLES
from cloneproof.same import FALSE_SHARE
from cloneproof.same.links import ClicksAndViews, ColumnKind, SameLink, links_of

BLOCK: Final = "block"


@dataclass(frozen=True)
class Item:
    """A row of the table: its number (from 1), whose it is, its values, and whether it is of the catalogue."""

    row: int
    owner: str
    texts: Mapping[str, str]
    known: bool = False


@dataclass(frozen=True)
class LikeAccounts(Data):
    """Two owners whose items match one to one: `same` of the `titles` of the smaller one.

    They may be one owner's accounts, or two shops that sell the same products. `pairs` are places of the items.
    """

    keys_of_data: ClassVar[tuple[str, ...]] = ("owners", "same", "titles")

    owners: tuple[str, str]
    same: int
    titles: int
    pairs: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class SameItems(WithFindings, Tabular):
    """Items that are the same.

    Attributes
    ----------
    by : dict of str to str
        The columns that were compared, with their kinds.
    owner : str
        The column of owners; "" without one.
    false_share : float
        The share of wrong pairs among `links` that is aimed at, on average.
    items : tuple of Item
        The rows, new ones first and then those of the catalogue that they were compared with.
    groups : tuple of tuple of int
        Places of items that are joined by links, two or more each, the largest first.
    links, alike : tuple of SameLink
        The pairs that are the same, by their places in `items`, and those that are alike and not named.
    accounts : tuple of LikeAccounts
        Owners whose items match one to one.
    expected_wrong : float
        How many of the links are expected to be wrong.
    rests_on : tuple of str
        What that number rests on, in sentences.
    known : mapping, optional
        Which groups a person has accepted, by id.
    """

    said_in: ClassVar[str] = "same"
    keys_of_data: ClassVar[tuple[str, ...]] = (
        "by", "owner", "false_share", "rows", "findings=finding_rows", "groups=group_rows", "links=link_rows",
        "alike=alike_rows", "accounts", "expected_wrong", "rests_on",
    )  # fmt: skip

    by: Mapping[str, str]
    owner: str
    false_share: float
    items: tuple[Item, ...]
    groups: tuple[tuple[int, ...], ...]
    links: tuple[SameLink, ...]
    alike: tuple[SameLink, ...]
    accounts: tuple[LikeAccounts, ...]
    expected_wrong: float
    rests_on: tuple[str, ...]

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
    def alike_rows(self) -> list[dict[str, Any]]:
        return [self._linked(link) for link in self.alike]

    def _named(self, place: int) -> dict[str, Any]:
        item = self.items[place]
        named = {"row": item.row, "owner": item.owner, **item.texts}
        return named | ({"known": True} if item.known else {})

    def _linked(self, link: SameLink) -> dict[str, Any]:
        said = link.to_dict()
        return {"one": self._named(link.one), "other": self._named(link.other)} | {
            key: said[key] for key in ("share", "vetoed", "why")
        }

    def to_columns(self) -> dict[str, list[Any]]:
        """Return a row for each item of a group, with its surest link."""
        best: dict[int, SameLink] = {}
        for link in sorted(self.links, key=lambda link: (-link.share, link.score, -link.one)):  # the surest is last
            best[link.one] = best[link.other] = link
        rows = [(number, place) for number, group in enumerate(self.groups, start=1) for place in group]
        links = [best[place] for _, place in rows]
        columns: dict[str, list[Any]] = {
            "group": [number for number, _ in rows],
            "row": [self.items[place].row for _, place in rows],
            "known": [self.items[place].known for _, place in rows],
            "owner": [self.items[place].owner for _, place in rows],
        }
        columns |= {name: [self.items[place].texts.get(name, "") for _, place in rows] for name in self.by}
        partners = [link.other if link.one == place else link.one for link, (_, place) in zip(links, rows, strict=True)]
        columns |= {"like": [self.items[partner].row for partner in partners]}
        columns |= {"share": [link.share for link in links], "why": [str(link.why) for link in links]}
        return columns


def same_items(
    table: object,
    by: str | Sequence[str] | Mapping[str, str] = (),
    owner: str | None = None,
    *,
    against: object = None,
    rewards: tuple[str, str] | None = None,
    false_share: float = FALSE_SHARE,
    progress: Callable[[float], None] = lambda _: None,
) -> SameItems:
    """Find the items of a table that are the same, and say how often that is wrong.

    Parameters
    ----------
    table : str, Path, data frame or mapping
        A CSV, Parquet or JSON-lines file, a data frame, or columns by name.
    by : str, sequence of str or mapping, optional
        The columns that are compared, such as ("title", "brand") or {"title": "text", "price": "number",
        "ean": "identifier", "artist": "block"}; without any, a column called title or name. Identifiers that are equal
        and rare decide, and unequal ones forbid. Where no owner is named, a block (an artist, a brand) takes its place.
    owner : str, optional
        The column of shops, sellers or agents; without one, all items are one owner's.
    against : str, Path, data frame or mapping, optional
        A catalogue with the same columns: only links of the table's rows are looked for.
    rewards : (str, str), optional
        The columns of clicks and views. Items that were clicked differently are not one item.
    false_share : float, default 0.05
        The share of wrong pairs among those named that is aimed at, on average.
    progress : function, optional
        Is told the share of the work that is done.

    Returns
    -------
    SameItems
        Groups, links with their reasons, pairs alike but not named, and how many links are expected to be wrong.

    Examples
    --------
    >>> mugs = {"title": ["Blue stone mug", "NEW: blue stone mug", "Tall pine jug"], "shop": ["ana", "ana", "bo"]}
    >>> found = same_items(mugs, by="title", owner="shop", false_share=0.5)
    >>> found.groups, str(found.links[0].why)
    (((0, 1),), 'both: blue, stone, mug; only one: new; one stands in the other as it is; comes and goes here: new')
    """
    share = number_in(false_share, "false_share", 0, 1, low_open=True)
    source = log_source(table)
    kinds = _kinds(source, by)
    items, values, counts = _items(source, kinds, owner, rewards, known=False)
    new = len(items)
    if against is not None:
        more = _items(log_source(against), kinds, owner, None, known=True)
        items, values = items + more[0], {name: values[name] + more[1][name] for name in kinds}
        counts += [(0.0, 0.0)] * len(more[0])
    blocks = [name for name, kind in kinds.items() if kind == BLOCK]
    owners = [item.owner for item in items]
    if owner is None and blocks:
        owners = [" | ".join(str(values[name][k] or "") for name in blocks) for k in range(len(items))]
    elif owner is None and against is not None:
        owners = ["table"] * new + ["catalogue"] * (len(items) - new)
    columns = {name: (kind, values[name]) for name, kind in kinds.items() if kind != BLOCK}
    told_rewards = (
        None if rewards is None else ClicksAndViews(*(np.array(column, float) for column in zip(*counts, strict=True)))
    )
    found = links_of(columns, owners, new, told_rewards, share, progress)
    sizes: dict[str, int] = {}
    for name in owners:
        sizes[name] = sizes.get(name, 0) + 1
    accounts = tuple(
        LikeAccounts((one, other), len(pairs), min(sizes[one], sizes[other]), pairs)
        for one, other, pairs in sorted(found.accounts, key=lambda account: -len(account[2]))
    )
    return SameItems(
        kinds, owner or "", share, tuple(items), found.groups, found.named, found.alike, accounts,
        found.expected_wrong, found.rests_on,
    )  # fmt: skip


def _kinds(source: LogSource, by: str | Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Return the columns with their kinds, checked."""
    wanted = dict(by) if isinstance(by, Mapping) else dict.fromkeys((by,) if isinstance(by, str) else by, "text")
    possible = (*get_args(ColumnKind), BLOCK)
    for kind in wanted.values():
        if kind not in possible:
            raise LogError(f"expected a kind of column, got {brief(kind)}; use {', '.join(possible)}")
    if wanted:
        names = {named_column(list(source.columns), "by", name): kind for name, kind in wanted.items()}
        if "text" not in names.values() and "number" not in names.values():
            raise LogError("expected a column of texts or numbers in by, got none; name what says what an item is")
        return names
    title = guessed_column(TITLES, list(source.columns))
    if title is None:
        raise LogError(f"expected a column of titles, got none called {' or '.join(TITLES)}; name it in by")
    return {title: "text"}


def _items(
    source: LogSource, kinds: Mapping[str, str], owner: str | None, rewards: tuple[str, str] | None, *, known: bool
) -> tuple[list[Item], dict[str, list[Any]], list[tuple[float, float]]]:
    """Read the rows: items, the values of each column as they are compared, and (clicks, views)."""
    wanted = [named_column(list(source.columns), "by", name) for name in kinds]
    wanted += [named_column(list(source.columns), "owner", owner)] if owner else []
    wanted += [named_column(list(source.columns), "rewards", name) for name in rewards or ()]
    listed = ", ".join(f"CAST({source.columns[name].sql} AS VARCHAR)" for name in wanted)
    items: list[Item] = []
    values: dict[str, list[Any]] = {name: [] for name in kinds}
    counts: list[tuple[float, float]] = []
    for number, row in enumerate(source.query(f"SELECT {listed} FROM {source.rows}"), start=1):
        told = dict(zip(kinds, row, strict=False))
        texts = {name: text for name, text in told.items() if text and text.strip()}
        items.append(Item(number, (row[len(kinds)] or "").strip() if owner else "", texts, known))
        for name, kind in kinds.items():
            text = texts.get(name)
            values[name].append(text if kind != "number" or text is None else _number(text, name, number))
        if rewards:
            clicks, views = (_number(text or "0", name, number) for text, name in zip(row[-2:], rewards, strict=True))
            if not 0 <= clicks <= views:
                raise LogError(
                    f"expected clicks up to the views, got {clicks:g} of {views:g} in row {number}; check both"
                )
            counts.append((clicks, views))
        else:
            counts.append((0.0, 0.0))
    return items, values, counts


def _number(text: str, name: str, row: int) -> float:
    """Read a number, also one with a currency's mark.

    >>> _number("$1,299.50", "price", 1)
    1299.5
    """
    try:
        value = float(text.strip().strip("$\u20ac\u00a3").replace(",", ""))
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise LogError(
            f"expected numbers in the column {brief(name)}, got {brief(text)} in row {row}; compare it as text"
        )
    return value
