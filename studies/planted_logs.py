"""Logs of an invented platform with copies planted into them: 20 agents of 3 items with titles, means from a prior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from cloneproof.analysis.copying.records import ArmRecord, CopyGroup

AGENTS, ITEMS = 20, 3
PLANTS = (
    "2 of one item",
    "3 of one item",
    "5 of one item",
    "3 with near titles",
    "second account",
    "second account, near titles",
)
WORDS = (  # noqa: SIM905 (sixty strings are no easier to read)
    "alpine amber autumn bicycle bright camera candle city classic coffee copper cotton country family fancy festival "
    "garden gentle golden guitar harbour holiday honey island jacket journey kitchen ladder leather lemon linen market "
    "meadow mirror modern morning mountain ocean olive orange paper pepper piano picnic planet pocket quiet river "
    "rocket saddle silver simple summer sunset tailor timber travel velvet village violet walnut winter wooden yellow"
).split()
GENERIC = ("summer sale now on", "free delivery this week")

PRIORS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "beta": lambda dice, count: dice.beta(2, 38, count),
    "few atoms": lambda dice, count: dice.choice([0.02, 0.05, 0.1], count),
    "heavy tails": lambda dice, count: np.minimum(0.9, 0.03 * np.exp(0.5 * dice.standard_t(2, count))),
    "agents differ": lambda dice, count: np.clip(dice.beta(2, 38) * np.exp(0.2 * dice.normal(size=count)), 0, 1),
}


@dataclass(frozen=True)
class PlantedLog:
    """The records, which item each arm is, and the agents of each plant."""

    records: list[ArmRecord]
    item: dict[tuple[str, str], int]
    plants: dict[str, tuple[str, ...]]

    def is_right(self, group: CopyGroup) -> bool:
        """Whether two of the group's arms are one item; across agents, of different ones."""
        arms = [(agent, self.item[agent, arm]) for agent, arm in group.arms]
        if group.kind == "one agent":
            return len({item for _, item in arms}) < len(arms)
        return any(a != b and one == other for a, one in arms for b, other in arms)

    def named_wrongly(self, group: CopyGroup) -> int:
        """How many arms of the group share their item with no other arm of it."""
        items = [self.item[arm] for arm in group.arms]
        return sum(items.count(item) == 1 for item in items)


def draw_log(seed: int, prior: str, rewards: int, planted: bool, equal: bool = False) -> PlantedLog:
    """A log. With plants, agents 0 to 3 register an item 2, 3, 5 and 3 times, and 6 and 7 are second accounts of 4, 5.

    Titles are new ones but for the last of each kind, where they are near copies, or `equal` ones.
    """
    dice = np.random.default_rng([seed, rewards, planted, *prior.encode()])
    means: list[float] = []
    titles: list[str] = []
    owned: dict[str, list[tuple[int, str]]] = {}
    for number in range(AGENTS):
        first = len(means)
        means += list(PRIORS[prior](dice, ITEMS))
        titles += [new_title(dice) for _ in range(ITEMS)]
        owned[f"agent {number}"] = [(first + k, titles[first + k]) for k in range(ITEMS)]
    plants: dict[str, tuple[str, ...]] = {}
    if planted:
        retitled = (lambda _, title: title) if equal else near_copy
        for number, copies in enumerate((2, 3, 5, 3)):
            own = owned[f"agent {number}"]
            item, title = own[0]
            own += [(item, retitled(dice, title) if number == 3 else new_title(dice)) for _ in range(copies - 1)]
            plants[PLANTS[number]] = (f"agent {number}",)
        owned["agent 6"] = [(item, new_title(dice)) for item, _ in owned["agent 4"]]
        owned["agent 7"] = [(item, retitled(dice, title)) for item, title in owned["agent 5"]]
        plants[PLANTS[4]], plants[PLANTS[5]] = ("agent 4", "agent 6"), ("agent 5", "agent 7")
    records, items = [], {}
    for agent, own in owned.items():
        for number, (item, title) in enumerate(own):
            clicks = float(dice.binomial(rewards, means[item]))
            records.append(ArmRecord(agent, f"ad {number}", rewards, clicks, clicks, {"title": title}))
            items[agent, f"ad {number}"] = item
    return PlantedLog(records, items, plants)


def draw_variants(seed: int, rewards: int, ratio: float = 1.6) -> PlantedLog:
    """Honest shops of variants: each product in three sizes under one title, with rates within a ratio of each other.

    Half of the shops have one product, the others two; no arm is a copy.
    """
    dice = np.random.default_rng([seed, rewards, 7])
    owned: list[tuple[str, str, float]] = []
    for number in range(AGENTS):
        for _ in range(1 + number % 2):
            level, title = dice.beta(2, 38), " ".join(dice.choice(WORDS, 4, replace=False))
            for size in "SML":
                owned.append((f"agent {number}", f"{title} size {size}", level * ratio ** dice.uniform(-0.5, 0.5)))
    return _logged(dice, owned, rewards, {number: number for number in range(len(owned))}, {})


def draw_copiers_inside(seed: int, rewards: int) -> PlantedLog:
    """Agents 0 and 1 register an item of their own three times each, under the same titles; they share nothing."""
    dice = np.random.default_rng([seed, rewards, 8])
    owned = [(f"agent {a}", new_title(dice), float(dice.beta(2, 38))) for a in range(AGENTS) for _ in range(ITEMS)]
    titles = [title for _, title, _ in owned[:ITEMS]]
    for agent in (0, 1):
        mine = slice(agent * ITEMS, (agent + 1) * ITEMS)
        owned[mine] = [(f"agent {agent}", title, owned[agent * ITEMS][2]) for title in titles]
    items = {number: number // ITEMS if number < 2 * ITEMS else number for number in range(len(owned))}
    return _logged(dice, owned, rewards, items, {"inside": ("agent 0", "agent 1")})


def draw_resellers(seed: int, rewards: int, spread: float = 0.2, pairs: int = 1) -> PlantedLog:
    """Honest shops, the first `pairs` two of which sell the same products under the same titles.

    A product's log-odds at a shop vary by `spread` (standard deviation) around the product's own.
    """
    dice = np.random.default_rng([seed, rewards, 9, pairs])
    owned: list[tuple[str, str, float]] = []
    for number in range(AGENTS):
        products = owned[-ITEMS:] if number % 2 and number < 2 * pairs else []
        for k in range(ITEMS):
            _, title, level = products[k] if products else ("", new_title(dice), float(logit(dice.beta(2, 38))))
            owned.append((f"agent {number}", title, level))
    rated = [
        (agent, title, float(expit(level + (spread * dice.normal() if number < 2 * pairs * ITEMS else 0.0))))
        for number, (agent, title, level) in enumerate(owned)
    ]
    return _logged(dice, rated, rewards, {number: number for number in range(len(owned))}, {})


def _logged(
    dice: np.random.Generator,
    owned: list[tuple[str, str, float]],
    rewards: int,
    items: dict[int, int],
    plants: dict[str, tuple[str, ...]],
) -> PlantedLog:
    records, item = [], {}
    for number, (agent, title, mean) in enumerate(owned):
        clicks = float(dice.binomial(rewards, mean))
        records.append(ArmRecord(agent, f"ad {number}", rewards, clicks, clicks, {"title": title}))
        item[agent, f"ad {number}"] = items[number]
    return PlantedLog(records, item, plants)


def new_title(dice: np.random.Generator) -> str:
    """Five words; one in twenty-five titles is one that many use."""
    if dice.random() < 0.04:
        return str(dice.choice(GENERIC))
    return " ".join(dice.choice(WORDS, 5, replace=False))


def near_copy(dice: np.random.Generator, title: str) -> str:
    """Another order, capitals, an exclamation mark and a missing letter."""
    words = title.split()
    dice.shuffle(words)
    place = int(dice.integers(len(words)))
    words[place] = words[place][:-1]
    return " ".join(words).title() + "!"
