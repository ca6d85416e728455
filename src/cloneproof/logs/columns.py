"""Which column of a log is what: as named by the caller, or guessed by its name and reported.

Recognised by their columns: the Open Bandit Dataset (`item_id`, `click`) and Open Bandit Pipeline (`action`, `reward`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cloneproof._lib.sources import guessed_column, listed_columns, named_column
from cloneproof.errors import LogError, brief

GUESSES: Final[Mapping[str, tuple[str, ...]]] = {
    "agent": (
        "agent", "agent_id", "advertiser", "advertiser_id", "provider", "provider_id", "creator", "creator_id",
        "seller", "seller_id", "vendor", "vendor_id", "merchant", "merchant_id", "publisher", "publisher_id", "owner",
        "owner_id", "account", "account_id", "artist", "artist_id", "shop", "shop_id", "store", "store_id", "brand",
        "brand_id", "supplier", "supplier_id",
    ),
    "arm": (
        "arm", "arm_id", "campaign", "campaign_id", "ad", "ad_id", "creative", "creative_id", "item", "item_id",
        "listing", "listing_id", "product", "product_id", "video", "video_id", "action", "model", "model_id",
    ),
    "reward": (
        "reward", "click", "clicked", "is_click", "clicks", "conversion", "converted", "rating",
    ),
    "time": ("time", "timestamp", "ts", "datetime", "date", "event_time", "created_at", "shown_at", "view_time"),
    "arrival": ("click_time", "clicked_at", "reward_time", "rewarded_at", "conversion_time", "converted_at"),
    "count": ("impressions", "views", "shows", "rounds"),
    "total": ("clicks", "conversions", "reward_sum"),
}  # fmt: skip
LIKELY_SEGMENTS: Final = (  # columns of which a note says whether rates differ by them
    "segment", "device", "device_type", "platform", "os", "browser", "country", "region", "language", "locale", "query",
    "keyword", "category", "channel", "page", "placement", "user_type",
)  # fmt: skip
TITLES: Final = ("title", "name", "product", "headline", "text")  # columns of texts that name an item
ROLES: Final = {
    "agent": "the agent", "arm": "the arm", "reward": "the reward", "time": "the time",
    "arrival": "the time of the reward",
    "count": "the number of rounds of a row", "total": "the sum of its rewards", "segment": "the segment",
    "position": "the place",
}  # fmt: skip


@dataclass(frozen=True)
class LogColumns:
    """Columns that are used, by what they mean; a row is one round, or `count` rounds with the sum `total`.

    Columns of segments are crossed. `notes` says what was guessed, and
    `doubts` which guesses had other columns with usual names, and which titles are not compared.
    """

    arm: str
    agent: str | None = None
    reward: str | None = None
    time: str | None = None
    arrival: str | None = None
    count: str | None = None
    total: str | None = None
    segment: tuple[str, ...] = ()
    position: str | None = None
    same: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def aggregated(self) -> bool:
        return self.count is not None

    @property
    def value(self) -> str:
        """Column with the reward of a row, or with the sum of its rewards."""
        return str(self.total if self.aggregated else self.reward)

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that is used."""
        single = (getattr(self, role) for role in ROLES)
        return (*(name for name in single if isinstance(name, str)), *self.segment, *self.same)

    def to_dict(self) -> dict[str, object]:
        roles = {role: getattr(self, role) for role in ROLES}
        named: dict[str, object] = {role: name for role, name in roles.items() if isinstance(name, str)}
        return named | ({"segment": list(self.segment)} if self.segment else {}) | {"same": list(self.same)}


def chosen_columns(
    names: Sequence[str],
    given: Mapping[str, str | None],
    same: Sequence[str] = (),
    owners: bool = False,
    segment: Sequence[str] = (),
    place: str = "FILE",
) -> LogColumns:
    """Return the columns by meaning: given ones must exist, the others are guessed.

    >>> found = chosen_columns(["ts", "advertiser_id", "ad", "click"], {"agent": None})
    >>> found.agent, found.arm, found.reward, found.time
    ('advertiser_id', 'ad', 'click', 'ts')
    >>> found.notes[0]
    'using `advertiser_id` as the agent'
    """
    chosen = _named(names, given)
    notes: list[str] = []
    doubts: list[str] = []
    free = [name for name in names if name not in chosen.values()]

    def guess(role: str) -> str | None:
        column = guessed_column(GUESSES[role], free)
        if column is not None:
            chosen[role] = column
            others = [name for name in free if name != column and guessed_column(GUESSES[role], [name])]
            if others and role in ("agent", "arm", "reward"):
                doubts.append(
                    f"`{column}` is taken for {ROLES[role]}, and {listed_columns(others)}: name it by --{role} COLUMN"
                )
            free.remove(column)
            notes.append(f"using `{column}` as {ROLES[role]}")
        return column

    wanted = ["arm"] if owners else ["agent", "arm"]
    missing = [role for role in wanted if role not in chosen and guess(role) is None]
    if "count" not in chosen and "reward" not in chosen:
        lower = {name.lower() for name in free}
        aggregated = all(lower & set(GUESSES[role]) for role in ("count", "total")) and "reward" not in lower
        if aggregated:
            guess("total"), guess("count")
        elif guess("reward") is None:
            missing.append("reward")
    if missing:
        raise LogError(_nothing_for(missing, names, free, {role: chosen[role] for role in given if given[role]}, place))
    if "time" not in chosen:
        guess("time")
    if "time" in chosen:
        guess("arrival")
    for name in segment:
        if named_column(names, ROLES["segment"], name) in chosen.values():
            raise LogError(f"expected segments of users, got {brief(name)}, which means something else; name another")
    chosen.pop("segment", None)
    for name in same:
        named_column(names, "what is compared", name)
    doubts += [] if same else _not_compared(free)
    if owners:
        chosen.pop("agent", None)
    return LogColumns(
        **chosen, segment=tuple(dict.fromkeys(segment)), same=tuple(same), notes=tuple(notes), doubts=tuple(doubts)
    )


def _not_compared(names: Sequence[str]) -> list[str]:
    """Describe the column of titles that nobody named."""
    title = guessed_column(TITLES, names)
    doubt = f"`{title}` may tell which items are the same, and is not compared: name it by --same {title}"
    return [] if title is None else [doubt]


def _named(names: Sequence[str], given: Mapping[str, str | None]) -> dict[str, str]:
    """Return the columns that the caller named, if they make sense together."""
    chosen = {role: named_column(names, ROLES[role], name) for role, name in given.items() if name is not None}
    if len(set(chosen.values())) < len(chosen):
        twice = next(name for name in chosen.values() if list(chosen.values()).count(name) > 1)
        raise LogError(f"expected a column for each meaning, got {brief(twice)} for two of them; name another one")
    if ("count" in chosen) != ("total" in chosen) and "reward" not in chosen:
        raise LogError("expected the number of rounds and the sum of rewards of a row together; give both or neither")
    if "count" in chosen and "reward" in chosen:
        raise LogError(
            "expected a reward a row, or a count and a sum of rewards a row, got a count and a reward; leave one out"
        )
    return chosen


def _nothing_for(
    missing: Sequence[str], names: Sequence[str], free: Sequence[str], given: Mapping[str, str], place: str
) -> str:
    """Say which columns have no usual name, and the whole command with what they seem to be."""
    meanings = [ROLES[role] for role in missing]
    what = " and ".join([", ".join(meanings[:-1]), meanings[-1]] if len(meanings) > 1 else meanings)
    left = list(free)
    seems = {}
    for role in missing:
        likely = (name for usual in GUESSES[role] for name in left if _holds(usual, name))
        seems[role] = next(likely, "COLUMN")
        left = [name for name in left if name != seems[role]]
    options = " ".join(f"--{role} {shlex.quote(name)}" for role, name in {**given, **seems}.items())
    other = ", or say whose items they are by --owners FILE" if "agent" in missing else ""
    return (
        f"expected {'columns' if len(missing) > 1 else 'a column'} for {what}, got none with a usual name; try "
        f"`cloneproof log {shlex.quote(place)} {options}`{other}; {listed_columns(names)}"
    )


def _holds(usual: str, name: str) -> bool:
    """Return whether a word of a name begins with a usual one.

    >>> _holds("click", "was_clicked"), _holds("ad", "Ad-Nr"), _holds("ad", "loaded")
    (True, True, False)
    """
    return any(word.startswith(usual) for word in re.split(r"[^a-z0-9]+", name.lower()))
