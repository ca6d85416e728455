"""Arms that look like one item, and the owners and originals that follow.

Arms of one agent whose texts or names are one item's (`same`) count as one original. Accounts count as one owner where
their titles match one to one, and those of no third account do; other texts that two agents share may be a product that
many shops have. All of this may be wrong, at the share of errors that is stated, and is a reason to look; rewards may
contradict it.

Real copies do not share one rate: in the Upworthy archive the log-odds of packages that are equal in all fields differ
by .139 +- .007 beyond sampling (studies/upworthy_copies.py). So the squared distances of log-odds from their common
mean, over the variances of sampling and of that spread, add up to a chi-square if the arms are one item. Rewards can
contradict, and never prove: different items may well earn alike.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Final

import numpy as np
from scipy.special import chdtrc

from cloneproof._lib.arrays import joined
from cloneproof.logs.fit import FittedRates, fit_rates
from cloneproof.logs.log import Log, LoggedArm
from cloneproof.market.priors import Prior
from cloneproof.same import FALSE_SHARE
from cloneproof.same.links import ClicksAndViews, Links, links_of
from cloneproof.same.words import read_words

ONE_ITEM_SPREAD: Final = 0.14  # standard deviation of the log-odds of one item's arms
UNLIKELY: Final = 0.001  # chance below which rewards contradict


def agreement(arms: Sequence[LoggedArm]) -> float | None:
    """Return the chance of rewards that differ at least as much if the arms are one item; None for fewer than two.

    Arms that were never served say nothing. Rewards of a smaller variance than binary ones count as so many more.

    >>> near, far = (LoggedArm("ana", name, 10_000, hits, hits) for name, hits in (("a", 310), ("b", 700)))
    >>> agreement([near, near]), round(agreement([near, far]), 6)
    (1.0, 4.7e-05)
    """
    served = [arm for arm in arms if arm.rounds]
    if len(served) < 2:
        return None
    rounds, totals, squares = (
        np.array([float(getattr(arm, name)) for arm in served]) for name in ("rounds", "total", "squares")
    )
    own, binary = (squares - totals**2 / rounds).sum(), (totals * (rounds - totals) / rounds).sum()
    worth = max(binary / own, 1.0) if own > 0 else 1.0
    hits, misses = totals * worth + 0.5, (rounds - totals) * worth + 0.5
    odds, weights = np.log(hits / misses), 1 / (1 / hits + 1 / misses + ONE_ITEM_SPREAD**2)
    apart = weights @ (odds - np.average(odds, weights=weights)) ** 2
    return float(chdtrc(len(served) - 1, apart))


MOST_ORIGINALS_STUDIED: Final = 300  # originals in the market fitted to a log
MOST_ORIGINALS_FITTED: Final = 2_000  # originals to which the law of rates is fitted, besides those
MOST_OF_ONE: Final = 20  # originals of one owner in it
MOST_STUDIED: Final = 6  # segments of a study; further ones are pooled
AgentArm = tuple[str, str]


@dataclass(frozen=True)
class LogOwner:
    """An owner, as far as the log tells: its accounts, and its originals as groups of arms.

    The originals with the most arms come first, then those with the most rounds.
    """

    name: str
    accounts: tuple[str, ...]
    originals: tuple[tuple[LoggedArm, ...], ...]

    @property
    def copies(self) -> tuple[int, ...]:
        return tuple(len(group) for group in self.originals)

    @property
    def copied(self) -> bool:
        return max(self.copies) > 1

    @property
    def arms(self) -> tuple[LoggedArm, ...]:
        return tuple(arm for group in self.originals for arm in group)

    @property
    def rounds(self) -> int:
        return sum(arm.rounds for arm in self.arms)


@dataclass(frozen=True)
class Lookalikes:
    """Arms that look like one item each, of an agent or of several; nothing is said about anybody's intentions.

    agents     whose they are
    items      groups of arms, (agent, arm), that look like one item; the largest first
    text       of the first item; nothing where arms have none
    reasons    what is alike: "equal name", "title", ..
    one_owner  whether the agents count as one owner in the study
    agreement  of each item, the chance of rewards that differ as much if it is one; None where too few were served
    """

    agents: tuple[str, ...]
    items: tuple[tuple[AgentArm, ...], ...]
    text: str
    reasons: tuple[str, ...]
    one_owner: bool
    agreement: tuple[float | None, ...]

    @property
    def many_shops(self) -> bool:
        """Whether it may be what several shops sell, so that they do not count as one owner."""
        return len(self.agents) > 1 and not self.one_owner

    @property
    def surplus(self) -> int:
        """Number of arms beyond one for each item."""
        return sum(len(item) - 1 for item in self.items)


def named_links(log: Log, same: Sequence[str], false_share: float = FALSE_SHARE) -> Links:
    """Return which arms are one item by the texts in `same` and by what they earned."""
    texts = {name: [arm.features.get(name) for arm in log.arms] for name in same}
    columns = {
        name: ("text" if any(" " in (text or "") for text in own) else "identifier", own) for name, own in texts.items()
    }
    counts = [(float(arm.total), float(arm.rounds)) for arm in log.arms]
    rewards = ClicksAndViews(*(np.array(column) for column in zip(*counts, strict=True)))
    return links_of(columns, [arm.agent for arm in log.arms], None, rewards, false_share)


def lookalikes(log: Log, found: Links) -> tuple[Lookalikes, ...]:
    """Return all that looks like one item, by agents; what has the most arms too many first, as a person would look.

    What several shops may sell comes last. Names of arms count within an agent only, and if they are equal but for
    case, marks and the word "copy".
    """
    arms = {arm.place: arm for arm in log.arms}
    links: dict[tuple[str, ...], list[tuple[str, Sequence[AgentArm]]]] = defaultdict(list)
    names: dict[tuple[str, str], list[AgentArm]] = defaultdict(list)
    for arm in log.arms:
        plain = " ".join(word for word in read_words(arm.arm) if word != "copy")
        if plain:
            names[arm.agent, plain].append(arm.place)
    for (agent, _), own in names.items():
        if len(own) > 1:
            links[agent,].append(("equal name", own))
    partners = Counter(owner for *owners, _ in found.accounts for owner in owners)
    accounts = {tuple(sorted(owners)) for *owners, _ in found.accounts if all(partners[owner] == 1 for owner in owners)}
    for link in found.named:
        places = log.arms[link.one].place, log.arms[link.other].place
        agents = tuple(sorted({agent for agent, _ in places}))
        links[agents].append(("titles one to one" if agents in accounts else "texts", places))
    groups = []
    for agents, matches in links.items():
        listed = tuple(dict.fromkeys(place for _, some in matches for place in some))
        number = {place: row for row, place in enumerate(listed)}
        pairs = [(number[one], number[other]) for _, some in matches for one, other in pairwise(some)]
        items = [tuple(listed[row] for row in rows) for rows in joined(len(listed), pairs)]
        items.sort(key=lambda item: (-len(item), -sum(arms[place].rounds for place in item)))
        reasons = tuple(dict.fromkeys(reason for reason, *_ in matches))
        texts = [text for place in items[0] for text in arms[place].features.values()]
        text = min(texts, key=lambda text: (" " not in text, len(text)), default="")
        agreed = tuple(agreement([arms[place] for place in item]) for item in items)
        groups.append(Lookalikes(agents, tuple(items), text, reasons, agents in accounts, agreed))
    return tuple(sorted(groups, key=lambda one: (one.many_shops, -one.surplus, -_rounds(one, arms), one.agents)))


def _rounds(one: Lookalikes, arms: Mapping[AgentArm, LoggedArm]) -> int:
    return sum(arms[place].rounds for item in one.items for place in item)


def log_owners(log: Log, alike: Sequence[Lookalikes]) -> tuple[LogOwner, ...]:
    """Return the owners, in the order of the log."""
    agent_names = log.agents
    agents = {name: number for number, name in enumerate(agent_names)}
    places = {arm.place: number for number, arm in enumerate(log.arms)}
    alike = [one for one in alike if not one.many_shops]
    same_owner = [(agents[one.agents[0]], agents[other]) for one in alike for other in one.agents[1:]]
    same_item = [(places[one], places[other]) for like in alike for item in like.items for one, other in pairwise(item)]
    items: dict[str, list[tuple[LoggedArm, ...]]] = {name: [] for name in agents}
    for numbers in joined(len(log.arms), same_item):
        group = tuple(log.arms[number] for number in numbers)
        items[group[0].agent].append(group)
    owners = []
    for accounts in joined(len(agents), same_owner):
        names = tuple(agent_names[number] for number in accounts)
        originals = [group for name in names for group in items[name]]
        originals.sort(key=lambda group: (-len(group), -sum(arm.rounds for arm in group)))
        owners.append(LogOwner(" + ".join(names), names, tuple(originals)))
    return tuple(owners)


def studied_owners(owners: Sequence[LogOwner]) -> tuple[LogOwner, ...]:
    """Choose as many owners as a market can be computed with: those with copies, then those with the most rounds.

    Limits the items of each, so that the owner with the most items does not fill the market.
    """
    limited = [replace(owner, originals=owner.originals[:MOST_OF_ONE]) for owner in owners]
    kept: list[str] = []
    originals = 0
    for owner in sorted(limited, key=lambda owner: (not owner.copied, -owner.rounds)):
        if originals + len(owner.originals) <= MOST_ORIGINALS_STUDIED:
            originals += len(owner.originals)
            kept.append(owner.name)
    return tuple(owner for owner in limited if owner.name in set(kept))


def fitted_owners(owners: Sequence[LogOwner], studied: Sequence[LogOwner]) -> list[LogOwner]:
    """Return the owners to whose items a law is fitted: those studied and, of very many others, every so many."""
    originals = sum(len(owner.originals) for owner in owners)
    kept, every = {owner.name for owner in studied}, -(-originals // MOST_ORIGINALS_FITTED)
    return [owner for number, owner in enumerate(owners) if owner.name in kept or number % every == 0]


def studied_words(studied: Sequence[LogOwner], owners: Sequence[LogOwner]) -> list[str]:
    """Describe which part of a log is studied, if not all of it."""
    counts = [
        (len(some), sum(len(o.originals) for o in some), sum(o.rounds for o in some)) for some in (studied, owners)
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


def studied_segments(log: Log) -> dict[str, Log]:
    """Return the log of each segment, the smallest pooled where there are many; the whole log without segments."""
    if not log.segments:
        return {"": log}
    names = list(log.segments)
    kept = names if len(names) <= MOST_STUDIED else names[: MOST_STUDIED - 1]
    segments = {name: log.segment(name) for name in kept}
    pooled: dict[tuple[str, str], LoggedArm] = {}
    for arm in (arm for name in names[len(kept) :] for arm in log.segments[name]):
        before = pooled.get(arm.place, replace(arm, rounds=0, total=Fraction(0), squares=Fraction(0)))
        sums = {name: getattr(before, name) + getattr(arm, name) for name in ("rounds", "total", "squares")}
        pooled[arm.place] = replace(before, **sums)
    rest = {f"{len(names) - len(kept)} others": tuple(pooled[place] for place in sorted(pooled))} if pooled else {}
    return segments | {name: replace(segments[kept[0]], arms=arms) for name, arms in rest.items()}


def fit_owners(rated: Sequence[LogOwner], studied: Sequence[LogOwner], log: Log, seed: int = 0) -> FittedRates:
    """Fit the law of rates to the originals of all owners, and draw the rates of the studied ones."""
    groups = segment_originals(rated, log)
    sums = [_pooled(arms) for own in groups.values() for arms in own]
    first = dict(zip(groups, accumulate((len(own) for own in groups.values()), initial=0), strict=False))
    asked = [first[owner.name] + k for owner in studied for k in range(len(owner.originals))]
    return fit_rates([earned for earned, _ in sums], [served for _, served in sums], asked, seed)


def _pooled(arms: Sequence[LoggedArm]) -> tuple[float, float]:
    """Return how many of the rewards of one original are 1, and how many binary rewards they are worth."""
    rounds = sum(arm.rounds for arm in arms)
    if not rounds:
        return 0.0, 0.0
    mean = float(sum(arm.total for arm in arms) / rounds)
    variance = float(sum(arm.squares for arm in arms) / rounds) - mean * mean
    worth = min(max(mean * (1 - mean) / variance, 1.0), 1e3) if variance > 1e-9 else 1.0
    return mean * rounds * worth, rounds * worth


def segment_originals(owners: Sequence[LogOwner], log: Log) -> dict[str, list[tuple[LoggedArm, ...]]]:
    """Return the originals of each owner as the log of a segment has them: nothing of those that were not served."""
    arms = {arm.place: arm for arm in log.arms}
    groups = {owner.name: [[arms.get(arm.place) for arm in group] for group in owner.originals] for owner in owners}
    return {name: [tuple(arm for arm in group if arm) for group in own] for name, own in groups.items()}


def by_segment(priors: Mapping[str, Prior]) -> Prior | dict[str, Prior]:
    """Return the priors of an item by segment as an agent takes them: the only one, where there are no segments."""
    return priors[""] if "" in priors else dict(priors)
