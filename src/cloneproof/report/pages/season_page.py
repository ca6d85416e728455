"""The audit of a season that was played, as one page: the audit's own, and what it rests on.

It begins with the arms that look like copies. Before the witness of the audit's page come the worth of copying to each
agent, the priors that were fitted, and every pair of one agent's arms with the probability of being copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from cloneproof.analysis.audit.verdict import Witness
from cloneproof.analysis.history import ArmRewards, PastAudit
from cloneproof.report import formatting
from cloneproof.report.figures.season_figures import fitted_priors, shorten, worth_of_copies
from cloneproof.report.pages.audit_page import audit_facts, write_page
from cloneproof.report.pages.likely_copies import MOST_SHOWN, likeliest_pair, likely_copies, probability_words
from cloneproof.report.pages.rendering import render

MOST_AGENTS, MOST_PAIRS, MOST_NAMED = 100, 40, 20
Facts = Sequence[tuple[str, str]]


def write_season_page(past: PastAudit, season: str, facts: Facts, path: str | Path) -> None:
    """Write the page, whole or not at all."""
    write_page(season_page(past, season, facts), path)


def season_page(past: PastAudit, season: str, facts: Facts) -> str:
    """The page as text; `season` names it, and `facts` are what is known of it besides the rewards."""
    likely = likely_copies(past)
    figures = {"worth": worth_of_copies(past), "fitted": fitted_priors(past)}
    additions = {
        "likely": likely[:MOST_SHOWN],
        "further_likely": max(0, len(likely) - MOST_SHOWN),
        "likeliest_pair": likeliest_pair(past),
        "season": formatting.printable(season),
        "season_facts": [(formatting.printable(key), formatting.printable(value)) for key, value in facts],
        "deviations": _deviations(past),
        "priors": _priors(past),
        "pairs": _pairs(past),
        "further_agents": max(0, len(past.audit.market.agents) - MOST_AGENTS),
        "further_pairs": max(0, len(past.pairs) - MOST_PAIRS),
        "odds": f"{past.odds:g}",
        "assumed": formatting.sentence(past.assumed),
    }
    for name, figure in figures.items():
        draw_svg = {width: Markup(svg) for width, svg in figure.svg.items()}
        additions[name] = {"title": figure.title, "caption": figure.caption} | draw_svg
    return render("season_page.html", audit_facts(past.audit) | additions)


def _deviations(past: PastAudit) -> dict[str, Any]:
    """Each audited agent: its best deviation, and what was registered is worth where that seems to have copies."""
    columns = ["best copies", "honest", "with them", "gain", "relative"]
    rows = []
    for name, best in list(past.best.items())[:MOST_AGENTS]:
        rows.append([formatting.printable(name), _copies(best), formatting.number(best.honest),
                     formatting.number(best.copied), _gain(best), formatting.percent(best)])  # fmt: skip
        if past.registered:
            rows[-1].append(_registered_copies(past, name))
    without = [formatting.printable(agent.name) for agent in past.audit.market.agents if agent.name not in past.best]
    return {
        "columns": columns + ["as registered"] * bool(past.registered),
        "rows": rows,
        "without": _join_names(without),
    }


def _join_names(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _registered_copies(past: PastAudit, name: str) -> str:
    if name not in past.registered:
        return "no copies"
    witness = past.registered[name]
    return "not evaluated" if witness is None else f"{_copies(witness)}: {_gain(witness)}"


def _gain(witness: Witness) -> str:
    return f"{formatting.number(witness.gain, sign=True)} {formatting.error_words(witness.gain)}"


def _copies(witness: Witness) -> str:
    return formatting.copies_words(witness.copies).replace(" ", formatting.FIXED)


def _priors(past: PastAudit) -> list[tuple[str, ...]]:
    """Agent, arms, originals, mean, atoms."""
    rows: list[tuple[str, ...]] = []
    for agent in past.audit.market.agents[:MOST_AGENTS]:
        groups, prior = past.originals[agent.name], agent.priors[0]
        atoms = " · ".join(
            f"{value:.3g}{formatting.FIXED}({100 * weight:.0f}{formatting.NARROW}%)"
            for value, weight in prior.atoms or ()
        )
        arms = sum(map(len, groups))
        rows.append((formatting.printable(agent.name), f"{arms}", f"{len(groups)}", f"{prior.mean:.3f}", atoms))
    return rows


def _pairs(past: PastAudit) -> list[tuple[str, ...]]:
    """Agent, the two arms with what they were seen to earn, the Bayes factor, the probability of copies."""
    seen = {(arm.agent, arm.arm): arm for arm in past.arms}
    return [
        (
            formatting.printable(pair.agent),
            *(_arm(seen[pair.agent, arm]) for arm in pair.arms),
            formatting.number(pair.bayes_factor),
            probability_words(pair.probability),
        )
        for pair in past.pairs[:MOST_PAIRS]
    ]


def _arm(arm: ArmRewards) -> str:
    name = shorten(formatting.printable(arm.arm), 40)
    return f"{name}: {arm.mean:.3f} of {arm.rewards:,}" if arm.rewards else f"{name}: no reward"
