"""`cloneproof audit`: can the mechanism be gamed? Exit code 0 clone-proof, 1 exploitable, 3 undecided, 2 bad input."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cloneproof._files import check_place
from cloneproof.analysis.audit.api import audit as run_audit
from cloneproof.analysis.audit.verdict import Verdict
from cloneproof.cli.display.audit_output import show_audit, write_evidence
from cloneproof.cli.display.output import print_json, progress_bar
from cloneproof.cli.options import (
    AsJson,
    BoundsOption,
    Device,
    MechanismName,
    RuleName,
    Settings,
    mechanism_or_rule,
    policy_box,
)
from cloneproof.errors import CloneproofError
from cloneproof.market.toml import load_market

BUDGET = 60.0  # seconds
EXIT: dict[Verdict, int] = {"clone-proof": 0, "exploitable": 1, "undecided": 3}


def audit(
    market_file: Annotated[str | None, typer.Argument(metavar="[MARKET.toml]", help="The market file.")] = None,
    mechanism: MechanismName = None,
    policy: Annotated[
        str | None,
        typer.Option(metavar="MODULE:NAME", help="Instead of a mechanism: your own policy, a class or a BlackBox."),
    ] = None,
    rule: RuleName = None,
    settings: Settings = None,
    agent: Annotated[str | None, typer.Option(help="Whose deviations; everybody's if left out.")] = None,
    max_copies: Annotated[int, typer.Option(help="Every vector with up to so many of each original is tried.")] = 4,
    opponents: Annotated[str, typer.Option(help="market: honest, with their priors; any: dominance.")] = "market",
    horizons: Annotated[
        str | None, typer.Option(metavar="FIRST:LAST", help="Every horizon from first to last.")
    ] = None,
    withhold: Annotated[bool, typer.Option("--withhold", help="Also leave originals out; reported apart.")] = False,
    split: Annotated[bool, typer.Option("--split", help="Also use two accounts; reported apart.")] = False,
    informed: Annotated[
        bool, typer.Option("--informed", help="Also an agent that knows its means; reported apart.")
    ] = False,
    copy_cost: Annotated[bool, typer.Option("--copy-cost", help="The fee per copy that would stop it.")] = False,
    tolerance: Annotated[float, typer.Option(help="The relative gain that counts as none; 0.005 is half a %.")] = 0.0,
    budget: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Stop searching after this time.", show_default="60, without --runs"),
    ] = None,
    runs: Annotated[int | None, typer.Option(help="Pairs of runs for a candidate, where it samples.")] = None,
    seed: Annotated[int, typer.Option(help="The seed, where it samples.")] = 0,
    bounds: BoundsOption = "distribution-free",
    device: Device = "auto",
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write a report to look at.")] = None,
    certificate: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write what `verify` checks; of samples, a replay record.")
    ] = None,
    from_ledger: Annotated[
        str | None,
        typer.Option(
            metavar="DB",
            help="Instead of a market file: a season of a service, its priors fitted.",
        ),
    ] = None,
    market_name: Annotated[str | None, typer.Option("--market", help="Which market of the ledger.")] = None,
    season: Annotated[int | None, typer.Option(help="Which season of the ledger; the last if left out.")] = None,
    copy_odds: Annotated[
        float | None, typer.Option(help="Prior odds that two arms of an agent are copies.", show_default="0.1")
    ] = None,
    atoms: Annotated[
        int | None, typer.Option(help="Atoms of each prior that is fitted to a ledger.", show_default="3")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Try to game a mechanism by registering copies. Gives a verdict, the best attack, and the scope of both.

    Exit code 0: clone-proof, 1: exploitable, 3: undecided, 2: bad input.
    """
    for path in (html, certificate):
        if path is not None:
            check_place(path)  # before the work, not after it
    budget = BUDGET if budget is None and runs is None else budget
    if from_ledger is not None:
        if any((market_file, mechanism, policy, rule, settings, horizons)):
            raise CloneproofError(
                "expected --from-ledger with none of MARKET.toml, --mechanism, --policy, --rule, --set and --horizons, "
                "since the ledger has the market; leave them out"
            )
        from cloneproof.cli.audit_season import audit_ledger

        search: dict[str, Any] = {"agent": agent, "max_copies": max_copies}
        search |= {"odds": 0.1 if copy_odds is None else copy_odds, "atoms": 3 if atoms is None else atoms}
        search |= {"opponents": opponents, "withhold": withhold, "tolerance": tolerance, "split": split}
        search |= {"copy_cost": copy_cost, "informed": informed, "budget_seconds": budget, "runs": runs, "seed": seed}
        search |= {"bounds": bounds, "device": device}
        verdict = audit_ledger(from_ledger, market_name, season, as_json, html, certificate, search)
        raise typer.Exit(EXIT[verdict])
    if any(option is not None for option in (market_name, season, copy_odds, atoms)):
        raise CloneproofError(
            "expected --market, --season, --copy-odds and --atoms only with --from-ledger, got one without it; "
            "leave it out, or name the ledger"
        )
    if market_file is None or sum(option is not None for option in (mechanism, policy, rule)) != 1:
        raise CloneproofError(
            "expected MARKET.toml and one of --mechanism NAME, --rule MODULE:NAME and --policy MODULE:NAME, or "
            "--from-ledger DB; give these"
        )
    market = load_market(market_file)
    name, audited = mechanism_or_rule(mechanism, rule, settings) if policy is None else policy_box(policy, settings)
    with progress_bar() as bar:
        task = bar.add_task(f"auditing {name}", total=None)
        result = run_audit(
            market,
            audited,
            agent=agent,
            max_copies=max_copies,
            opponents=opponents,  # type: ignore[arg-type]
            withhold=withhold,
            tolerance=tolerance,
            horizons=horizons,
            split=split,
            copy_cost=copy_cost,
            informed=informed,
            budget_seconds=budget,
            runs=runs,
            seed=seed,
            bounds=bounds,  # type: ignore[arg-type]
            device=device,  # type: ignore[arg-type]
            progress=lambda done, total, what: bar.update(task, total=total, completed=done, description=what),
        )
    if as_json:
        print_json(result.to_dict())
    else:
        show_audit(result, f"{name} on {market_file}")
        if budget is not None:
            print(f"The search took {result.seconds:.1f} s and had {budget:g} s (--budget).")
    if certificate is not None:
        write_evidence(result, certificate)
    if html is not None:
        from cloneproof.report.pages.audit_page import write_audit_page  # late: drawing takes a second to load

        write_audit_page(result, html)
    raise typer.Exit(EXIT[result.verdict])
