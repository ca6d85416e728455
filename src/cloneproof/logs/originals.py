"""From a log and what looks like copies in it to owners and originals.

Accounts that are joined by a finding across agents count as one owner; arms that are joined by a finding count as one
original. The findings may be wrong at their level, and so may this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cloneproof.analysis.copying import ArmRecord, CopyGroup
from cloneproof.logs.log import Log, LoggedArm

MOST_ORIGINALS_STUDIED = 300
MOST_OF_ONE = 20  # originals of an owner that are studied
ArmPlace = tuple[str, str]


@dataclass(frozen=True)
class LogOwner:
    """Who is paid, as far as the log tells: accounts, and originals as groups of arms.

    The originals with the most arms come first, of those the ones with the most rounds.
    """

    name: str
    accounts: tuple[str, ...]
    originals: tuple[tuple[LoggedArm, ...], ...]

    @property
    def copies(self) -> tuple[int, ...]:
        """How often each original is registered."""
        return tuple(len(group) for group in self.originals)

    @property
    def copied(self) -> bool:
        """Whether an original is registered more than once."""
        return max(self.copies) > 1

    @property
    def rounds(self) -> int:
        """How many rounds it had."""
        return sum(arm.rounds for group in self.originals for arm in group)


def arm_records(log: Log) -> list[ArmRecord]:
    """The arms as the search for copies takes them."""
    return [
        ArmRecord(arm.agent, arm.arm, arm.rounds, float(arm.total), float(arm.squares), dict(arm.features))
        for arm in log.arms
    ]


def log_owners(log: Log, found: Sequence[CopyGroup]) -> tuple[LogOwner, ...]:
    """The owners, in the order of the log."""
    accounts: dict[str, str] = {name: name for name in log.agents}
    items: dict[tuple[str, str], tuple[str, str]] = {(arm.agent, arm.arm): (arm.agent, arm.arm) for arm in log.arms}
    arms = {(arm.agent, arm.arm): arm for arm in log.arms}
    for group in found:
        for agent in group.agents[1:]:
            old, new = accounts[agent], accounts[group.agents[0]]
            accounts = {name: new if root == old else root for name, root in accounts.items()}
        for first, second in _joined(group, arms):
            old_item, new_item = items[second], items[first]
            items = {name: new_item if root == old_item else root for name, root in items.items()}
    owners = []
    for root in dict.fromkeys(accounts.values()):
        names = tuple(name for name, own in accounts.items() if own == root)
        groups: dict[tuple[str, str], list[LoggedArm]] = {}
        for place, arm in arms.items():
            if arm.agent in names:
                groups.setdefault(items[place], []).append(arm)
        ordered = sorted(groups.values(), key=lambda group: (-len(group), -sum(arm.rounds for arm in group)))
        owners.append(LogOwner(" + ".join(names), names, tuple(tuple(group) for group in ordered)))
    return tuple(owners)


def _joined(group: CopyGroup, arms: Mapping[ArmPlace, LoggedArm]) -> list[tuple[ArmPlace, ArmPlace]]:
    """Pairs of arms that a finding makes one item: all of one agent's; across agents each with its nearest likeness.

    Arms of two agents are matched one to one, the most alike first: by what is known of them, then by what they earned.
    """
    if group.kind == "one agent":
        return [(group.arms[0], other) for other in group.arms[1:]]
    mine = [place for place in group.arms if place[0] == group.agents[0]]
    theirs = [place for place in group.arms if place[0] != group.agents[0]]
    ranked = sorted(((a, b) for a in mine for b in theirs), key=lambda pair: _unlike(arms[pair[0]], arms[pair[1]]))
    matched: list[tuple[ArmPlace, ArmPlace]] = []
    for first, second in ranked:
        if all(first not in pair and second not in pair for pair in matched):
            matched.append((first, second))
    return matched


def _unlike(first: LoggedArm, second: LoggedArm) -> tuple[float, float]:
    from rapidfuzz import fuzz  # of the extra that reads logs

    texts = [
        fuzz.token_set_ratio(value, other)
        for name, value in first.features.items()
        if isinstance(value, str) and isinstance(other := second.features.get(name), str)
    ]
    return -max(texts, default=0.0), abs(first.mean - second.mean)


def studied_owners(owners: Sequence[LogOwner]) -> tuple[LogOwner, ...]:
    """As many as a market can be computed with: those with copies, then with the most rounds; some items of each.

    Without the limit for each, the owner with the most items would fill the market.
    """
    limited = [replace(owner, originals=owner.originals[:MOST_OF_ONE]) for owner in owners]
    kept: list[str] = []
    originals = 0
    for owner in sorted(limited, key=lambda owner: (not owner.copied, -owner.rounds)):
        if originals + len(owner.originals) <= MOST_ORIGINALS_STUDIED:
            originals += len(owner.originals)
            kept.append(owner.name)
    return tuple(owner for owner in limited if owner.name in set(kept))


def studied_words(studied: Sequence[LogOwner], owners: Sequence[LogOwner]) -> list[str]:
    """Which part of a log is studied, where it is not all of it."""
    counts = [
        (len(each), sum(len(o.originals) for o in each), sum(o.rounds for o in each)) for each in (studied, owners)
    ]
    if counts[0] == counts[1]:
        return []
    parts = [
        f"{some:,} of {all_:,} {what}" for some, all_, what in zip(*counts, ("owners", "items", "rounds"), strict=True)
    ]
    share = counts[0][2] / max(counts[1][2], 1)
    return [
        f"the market has {', '.join(parts)} ({share:.0%} of the rounds): owners with copies and with the most rounds, "
        f"and up to {MOST_OF_ONE} items of each"
    ]
