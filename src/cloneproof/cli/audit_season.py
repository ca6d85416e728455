"""`cloneproof audit --from-ledger DB`: the audit of a past season."""

from __future__ import annotations

import textwrap
from typing import Any

from cloneproof.analysis.audit.verdict import Verdict
from cloneproof.analysis.history import PastAudit, audit_past
from cloneproof.analysis.history.pairs import Pair
from cloneproof.cli.display.audit_output import MOST_ROWS, show_audit, write_evidence
from cloneproof.cli.display.output import new_table, note, print_json, print_table
from cloneproof.cli.serve import service_package


def audit_ledger(
    place: str,
    market: str | None,
    season: int | None,
    as_json: bool,
    html: str | None,
    certificate: str | None,
    search: dict[str, Any],
) -> Verdict:
    """Read a season, fit its priors, audit it, show it; the verdict on the fitted market."""
    service_package()
    from cloneproof.serve.ledger.terms import build_mechanism
    from cloneproof.serve.offline.season import read_season

    history = read_season(place, market, season)
    spec = history.spec
    past = audit_past(history.arms, build_mechanism(spec), spec.horizon, spec.share, spec.family, **search)
    facts = {
        "market": spec.market, "season": history.season, "state": history.state,
        "decisions": history.decisions, "rewards": sum(arm.rewards for arm in history.arms), "missing": history.missing,
    }  # fmt: skip
    if as_json:
        print_json(facts | past_data(past))
    else:
        _show(past, facts)
    if certificate is not None and write_evidence(past.audit, certificate):
        note(f"what {certificate} says is about the fitted market; how that was fitted is not part of it")
    if html is not None:
        from cloneproof.report.pages.season_page import write_season_page  # late: drawing takes a second to load

        shown = [(key, f"{value:,}" if isinstance(value, int) else str(value)) for key, value in facts.items()]
        write_season_page(past, f"season {history.season} of {spec.market}", shown, html)
    return past.audit.verdict


def past_data(past: PastAudit) -> dict[str, Any]:
    """The audit of a season as JSON."""
    return {
        "priors": {agent.name: agent.priors[0].to_dict() for agent in past.audit.market.agents},
        "originals": {name: [list(group) for group in groups] for name, groups in past.originals.items()},
        "copy_odds": past.odds,
        "one_item": [
            {"agent": item.agent, "arms": list(item.arms), "probability": item.probability} for item in past.items
        ],
        "pairs": [pair_data(pair) for pair in past.pairs],
        "best": {name: witness.to_dict() for name, witness in past.best.items()},
        "registered": {
            name: None if witness is None else witness.to_dict() for name, witness in past.registered.items()
        },
        "assumed": past.assumed,
        "audit": past.audit.to_dict(),
    }


def pair_data(pair: Pair) -> dict[str, Any]:
    """Two arms as JSON."""
    return {
        "agent": pair.agent,
        "arms": list(pair.arms),
        "bayes_factor": pair.bayes_factor,
        "probability": pair.probability,
    }


def _show(past: PastAudit, facts: dict[str, Any]) -> None:
    show_audit(past.audit, "{market}, season {season} ({rewards} rewards), priors fitted".format(**facts))
    table = new_table("Fitted priors", "agent", "arms", "originals", "mean", "atoms")
    for agent in past.audit.market.agents:
        groups, atoms = past.originals[agent.name], agent.priors[0].atoms or ()
        shape = "  ".join(f"{value:.3g}: {100 * weight:.0f} %" for value, weight in atoms)
        table.add_row(agent.name, str(sum(map(len, groups))), str(len(groups)), f"{agent.priors[0].mean:.3f}", shape)
    print_table(table)
    if past.pairs:
        table = new_table("Pairs of one agent's arms", "agent", "arms", "copies?", "Bayes factor")
        for pair in past.pairs[:MOST_ROWS]:
            table.add_row(pair.agent, " and ".join(pair.arms), f"{pair.probability:.4f}", f"{pair.bayes_factor:.3g}")
        print_table(table)
    further = len(past.pairs) - MOST_ROWS
    words = [f"{further} further pairs are not shown."] if further > 0 else []
    for name, witness in past.registered.items():
        gain = None if witness is None else witness.gain
        worth = "was not evaluated" if gain is None else f"is worth {gain.value:+.6g} ± {gain.error:.1e}"
        words.append(f"What {name} seems to have registered {worth} against registering each original once.")
    for item in past.items:
        arms = ", ".join(item.arms[:MOST_ROWS]) + (" .." if len(item.arms) > MOST_ROWS else "")
        words.append(f"Rather one item than not: {arms} of {item.agent} (all of them: {item.probability:.3f}).")
    words.append("The verdict is about the fitted market.")
    words.append(f"Prior odds of a copy: {past.odds:g}. Equal means alone prove nothing. Assumed: {past.assumed}.")
    print(textwrap.fill(" ".join(words), width=100))
