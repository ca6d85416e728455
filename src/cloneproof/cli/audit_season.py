"""`cloneproof audit --from-ledger DB`: the audit of a season that was played."""

from __future__ import annotations

import textwrap
from typing import Any

from cloneproof.analysis.audit.verdict import Verdict
from cloneproof.analysis.history import PastAudit, audit_past
from cloneproof.analysis.history.pairs import Pair
from cloneproof.cli.audit import MOST_ROWS, as_data, show, witness_data, write_certificate_of
from cloneproof.cli.output import new_table, note, print_json, print_table
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
    from cloneproof.serve.ledger.terms import made_mechanism
    from cloneproof.serve.offline.season import read_season

    read = read_season(place, market, season)
    spec = read.spec
    past = audit_past(read.arms, made_mechanism(spec), spec.horizon, spec.share, spec.family, **search)
    what = {
        "market": spec.market, "season": read.season, "state": read.state,
        "decisions": read.decisions, "rewards": sum(arm.rewards for arm in read.arms), "missing": read.missing,
    }  # fmt: skip
    if as_json:
        print_json(what | past_data(past))
    else:
        _show(past, what)
    if certificate is not None and write_certificate_of(past.audit, certificate):
        note(f"what {certificate} says is about the fitted market; how that was fitted is not part of it")
    if html is not None:
        from cloneproof.report.pages.season_page import write_season_page  # late: drawing takes a second to load

        facts = [(key, f"{value:,}" if isinstance(value, int) else str(value)) for key, value in what.items()]
        write_season_page(past, f"season {read.season} of {spec.market}", facts, html)
    return past.audit.verdict


def past_data(past: PastAudit) -> dict[str, Any]:
    """The audit of a season as JSON."""
    return {
        "priors": {one.name: one.priors[0].to_dict() for one in past.audit.market.agents},
        "originals": {name: [list(group) for group in groups] for name, groups in past.originals.items()},
        "copy_odds": past.odds,
        "pairs": [pair_data(pair) for pair in past.pairs],
        "best": {name: witness_data(one) for name, one in past.best.items()},
        "registered": {name: None if one is None else witness_data(one) for name, one in past.registered.items()},
        "assumed": past.assumed,
        "audit": as_data(past.audit),
    }


def pair_data(pair: Pair) -> dict[str, Any]:
    """Two arms as JSON."""
    return {
        "agent": pair.agent,
        "arms": list(pair.arms),
        "bayes_factor": pair.bayes_factor,
        "probability": pair.probability,
    }


def _show(past: PastAudit, what: dict[str, Any]) -> None:
    show(past.audit, "{market}, season {season} ({rewards} rewards), priors fitted".format(**what))
    table = new_table("Fitted priors", "agent", "arms", "originals", "mean", "atoms")
    for one in past.audit.market.agents:
        groups, atoms = past.originals[one.name], one.priors[0].atoms or ()
        shape = "  ".join(f"{value:.3g}: {100 * weight:.0f} %" for value, weight in atoms)
        table.add_row(one.name, str(sum(map(len, groups))), str(len(groups)), f"{one.priors[0].mean:.3f}", shape)
    print_table(table)
    if past.pairs:
        table = new_table("Pairs of one agent's arms", "agent", "arms", "copies?", "Bayes factor")
        for pair in past.pairs[:MOST_ROWS]:
            table.add_row(pair.agent, " and ".join(pair.arms), f"{pair.probability:.4f}", f"{pair.bayes_factor:.3g}")
        print_table(table)
    further = len(past.pairs) - MOST_ROWS
    words = [f"{further} further pairs are not shown."] if further > 0 else []
    for name, done in past.registered.items():
        worth = "was not evaluated" if done is None else f"is worth {done.gain.value:+.6g} ± {done.gain.error:.1e}"
        words.append(f"What {name} seems to have registered {worth} against registering each original once.")
    words.append("The verdict is about the fitted market.")
    words.append(f"Prior odds of a copy: {past.odds:g}. Equal means alone prove nothing. Assumed: {past.assumed}.")
    print(textwrap.fill(" ".join(words), width=100))
