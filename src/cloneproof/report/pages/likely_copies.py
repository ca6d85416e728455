"""What a season's page begins with: which agents' arms look like copies, and why.

A likeness is a reason to look at the arms themselves. The rewards do not say who registered what, or what for, so no
sentence here says more of an agent than what its arms earned.
"""

from __future__ import annotations

from typing import NamedTuple

from cloneproof.analysis.history import PastAudit
from cloneproof.analysis.history.pairs import Pair
from cloneproof.report import formatting
from cloneproof.report.figures.season_figures import shorten

MOST_SHOWN, MOST_ARMS = 10, 6


class LikelyCopies(NamedTuple):
    """Arms of one agent that are rather copies of one item than not, in words."""

    agent: str
    arms: str
    why: str
    worth: str


def likely_copies(past: PastAudit) -> list[LikelyCopies]:
    """Every group of an agent's arms that count as one original, the likeliest first."""
    found = []
    for agent, groups in past.originals.items():
        for group in groups:
            inside = [pair for pair in past.pairs if pair.agent == agent and set(pair.arms) <= set(group)]
            if len(group) > 1 and inside:
                best = max(pair.probability for pair in inside)
                words = LikelyCopies(formatting.printable(agent), _arms(group), _why(past, group, inside), "")
                found.append((best, words._replace(worth=_worth(past, agent))))
    return [words for _, words in sorted(found, key=lambda pair: -pair[0])]


def likeliest_pair(past: PastAudit) -> str:
    """Where no arms look like copies: the pair that comes nearest."""
    if not past.pairs:
        return "No agent registered two arms, so there is no pair to judge."
    pair = max(past.pairs, key=lambda one: one.probability)
    arms = _arms(pair.arms)
    return (
        f"The likeliest pair is {arms} of {formatting.printable(pair.agent)}: copies with probability "
        f"{probability_words(pair.probability)}."
    )


def probability_words(value: float) -> str:
    """Four digits; never 0 or 1, which no season can show.

    >>> probability_words(0.25), probability_words(1.0), probability_words(0.0)
    ('0.2500', '> 0.9999', '< 0.0001')
    """
    return "> 0.9999" if value > 0.9999 else "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def _arms(names: tuple[str, ...]) -> str:
    shown = [shorten(formatting.printable(name), 40) for name in names]
    if len(shown) > MOST_ARMS:
        return f"{', '.join(shown[:MOST_ARMS])} and {len(shown) - MOST_ARMS} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]])


def _why(past: PastAudit, group: tuple[str, ...], pairs: list[Pair]) -> str:
    """What their rewards were, and what that makes of the odds."""
    arms = [arm for arm in past.arms if arm.agent == pairs[0].agent and arm.arm in group and arm.rewards]
    means = [arm.mean for arm in arms]
    low, high = min(pair.probability for pair in pairs), max(pair.probability for pair in pairs)
    between = probability_words(high) if low == high else f"{probability_words(low)} to {probability_words(high)}"
    rewards = sum(arm.rewards for arm in arms)
    if not means:
        return f"They have no rewards; it is the prior odds of {past.odds:g} alone that make copies of them."
    return (
        f"They earned {min(means):.3f} to {max(means):.3f} a round, over {rewards:,} rewards. One mean for all of them "
        f"explains that better than a mean for each: two of them are copies with probability {between}, at prior "
        f"odds of {past.odds:g}.{_all_of_them(past, pairs[0].agent, group)}"
    )


def _all_of_them(past: PastAudit, agent: str, group: tuple[str, ...]) -> str:
    """The probability of the whole group, where it has more than two arms."""
    for item in past.items:
        if len(group) > 2 and item.agent == agent and set(item.arms) == set(group):
            return f" All {len(group)} are one item with probability {probability_words(item.probability)}."
    return ""


def _worth(past: PastAudit, agent: str) -> str:
    if agent not in past.registered:
        return ""
    witness = past.registered[agent]
    if witness is None:
        return "What such a registration is worth was not evaluated."
    gain = witness.gain
    change = "gains" if gain.low > 0 else "loses" if gain.high < 0 else "neither surely gains nor loses"
    return (
        f"If they are copies, the registration {change} in the fitted market: "
        f"{formatting.number(gain, sign=True)} {formatting.error_words(gain)} against registering each item once."
    )
