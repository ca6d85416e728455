"""The audit of a past season as one page: the audit's page, and what it rests on.

It begins with the arms that look like copies. Before the witness come what copying is worth to each agent, the fitted
priors, and every pair of an agent's arms with the probability that they are copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cloneproof.analysis.audit.verdict import Witness
from cloneproof.analysis.copying.season import ArmRewards, Pair, PastAudit
from cloneproof.report.audit_page import audit_facts
from cloneproof.report.page import render, write_page
from cloneproof.report.words import (
    FIXED,
    NARROW,
    copies_words,
    error_words,
    names_words,
    number,
    percent,
    printable,
    sentence,
    shorten,
)

MOST_SHOWN, MOST_ARMS = 10, 6


class LikelyCopies(NamedTuple):
    """Arms of one agent that are more likely copies of one item than not, in words."""

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
                words = LikelyCopies(printable(agent), names_words(group, MOST_ARMS), _why(past, group, inside), "")
                found.append((best, words._replace(worth=_worth(past, agent))))
    return [words for _, words in sorted(found, key=lambda pair: -pair[0])]


def likeliest_pair(past: PastAudit) -> str:
    """The most likely pair, if no arms look like copies."""
    if not past.pairs:
        return "No agent registered two arms, so there is no pair to judge."
    pair = max(past.pairs, key=lambda one: one.probability)
    arms = names_words(pair.arms)
    return (
        f"The likeliest pair is {arms} of {printable(pair.agent)}: copies with probability "
        f"{probability_words(pair.probability)}."
    )


def probability_words(value: float) -> str:
    """Four digits; never 0 or 1, which no finite data can show.

    >>> probability_words(0.25), probability_words(1.0), probability_words(0.0)
    ('0.2500', '> 0.9999', '< 0.0001')
    """
    return "> 0.9999" if value > 0.9999 else "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def _why(past: PastAudit, group: tuple[str, ...], pairs: list[Pair]) -> str:
    """The rewards of the arms, and what they do to the odds."""
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
    """The probability of the whole group, if it has more than two arms."""
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
        f"{number(gain, sign=True)} {error_words(gain)} against registering each item once."
    )


MOST_AGENTS, MOST_PAIRS, MOST_NAMED = 100, 40, 20
Facts = Sequence[tuple[str, str]]


def write_season_page(past: PastAudit, season: str, facts: Facts, path: str | Path) -> None:
    """Write the page, whole or not at all."""
    write_page(season_page(past, season, facts), path)


def season_page(past: PastAudit, season: str, facts: Facts) -> str:
    """The page as text; `season` is its title, `facts` are further rows about the season."""
    likely = likely_copies(past)
    additions = {
        "likely": likely[:MOST_SHOWN],
        "further_likely": max(0, len(likely) - MOST_SHOWN),
        "likeliest_pair": likeliest_pair(past),
        "season": printable(season),
        "season_facts": [(printable(key), printable(value)) for key, value in facts],
        "deviations": _deviations(past),
        "priors": _priors(past),
        "pairs": _pairs(past),
        "further_agents": max(0, len(past.audit.market.agents) - MOST_AGENTS),
        "further_pairs": max(0, len(past.pairs) - MOST_PAIRS),
        "odds": f"{past.odds:g}",
        "assumed": sentence(past.assumed),
    }
    return render("season_page.html", audit_facts(past.audit) | additions)


def _deviations(past: PastAudit) -> dict[str, Any]:
    """Each audited agent: its best deviation, and the worth of its registration if that seems to have copies."""
    columns = ["best copies", "honest", "with them", "gain", "relative"]
    rows = []
    for name, best in list(past.best.items())[:MOST_AGENTS]:
        rows.append([printable(name), _copies(best), number(best.honest),
                     number(best.copied), _gain(best), percent(best)])  # fmt: skip
        if past.registered:
            rows[-1].append(_registered_copies(past, name))
    without = [agent.name for agent in past.audit.market.agents if agent.name not in past.best]
    return {
        "columns": columns + ["as registered"] * bool(past.registered),
        "rows": rows,
        "without": names_words(without, MOST_NAMED, 64),
    }


def _registered_copies(past: PastAudit, name: str) -> str:
    if name not in past.registered:
        return "no copies"
    witness = past.registered[name]
    return "not evaluated" if witness is None else f"{_copies(witness)}: {_gain(witness)}"


def _gain(witness: Witness) -> str:
    return f"{number(witness.gain, sign=True)} {error_words(witness.gain)}"


def _copies(witness: Witness) -> str:
    return copies_words(witness.copies).replace(" ", FIXED)


def _priors(past: PastAudit) -> list[tuple[str, ...]]:
    """Agent, arms, originals, mean, atoms."""
    rows: list[tuple[str, ...]] = []
    for agent in past.audit.market.agents[:MOST_AGENTS]:
        groups, prior = past.originals[agent.name], agent.priors[0]
        atoms = " · ".join(f"{value:.3g}{FIXED}({100 * weight:.0f}{NARROW}%)" for value, weight in prior.atoms or ())
        arms = sum(map(len, groups))
        rows.append((printable(agent.name), f"{arms}", f"{len(groups)}", f"{prior.mean:.3f}", atoms))
    return rows


def _pairs(past: PastAudit) -> list[tuple[str, ...]]:
    """Agent, the two arms with what they were seen to earn, the Bayes factor, the probability of copies."""
    seen = {(arm.agent, arm.arm): arm for arm in past.arms}
    return [
        (
            printable(pair.agent),
            *(_arm(seen[pair.agent, arm]) for arm in pair.arms),
            number(pair.bayes_factor),
            probability_words(pair.probability),
        )
        for pair in past.pairs[:MOST_PAIRS]
    ]


def _arm(arm: ArmRewards) -> str:
    name = shorten(printable(arm.arm), 40)
    return f"{name}: {arm.mean:.3f} of {arm.rewards:,}" if arm.rewards else f"{name}: no reward"
