"""The audit of a past season as one page: the audit's page, and what it rests on.

It begins with the arms that look like copies. Before the witness come what copying is worth to each agent, the fitted
priors, and every pair of an agent's arms with the probability that they are copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cloneproof.analysis.audit.verdict import Witness
from cloneproof.analysis.copying.season import ArmRewards, PastAudit
from cloneproof.analysis.copying.wording import chance_words
from cloneproof.report.audit_page import audit_facts
from cloneproof.report.page import render
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
MOST_AGENTS, MOST_PAIRS, MOST_NAMED = 100, 40, 20
Facts = Sequence[tuple[str, str]]


def season_page(past: PastAudit, season: str, facts: Facts) -> str:
    """The page as text; `season` is its title, `facts` are further rows about the season."""
    additions = {
        "likely": [
            (printable(item.agent), names_words(item.arms, MOST_ARMS), chance_words(item.probability))
            for item in past.items[:MOST_SHOWN]
        ],
        "further_likely": max(0, len(past.items) - MOST_SHOWN),
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
            chance_words(pair.probability),
        )
        for pair in past.pairs[:MOST_PAIRS]
    ]


def _arm(arm: ArmRewards) -> str:
    name = shorten(printable(arm.arm), 40)
    return f"{name}: {arm.mean:.3f} of {arm.rewards:,}" if arm.rewards else f"{name}: no reward"
