"""`cloneproof audit`: can the mechanism be gamed? Exit code 0 clone-proof, 1 exploitable, 3 undecided, 2 bad input."""

from __future__ import annotations

import textwrap
from typing import Annotated, Any

import typer

from cloneproof._files import check_place
from cloneproof.analysis.audit.api import audit as run_audit
from cloneproof.analysis.audit.verdict import Audit, Verdict, Witness
from cloneproof.cli.options import AsJson, Settings, chosen_mechanism
from cloneproof.cli.output import new_table, note, print_json, print_table, progress_bar
from cloneproof.errors import CloneproofError
from cloneproof.market.toml import load_market

EXIT: dict[Verdict, int] = {"clone-proof": 0, "exploitable": 1, "undecided": 3}
MOST_ROWS = 12


def audit(
    market_file: Annotated[str | None, typer.Argument(metavar="[MARKET.toml]", help="The market file.")] = None,
    mechanism: Annotated[
        str | None, typer.Option("--mechanism", "-m", help="A name from `cloneproof mechanisms`.")
    ] = None,
    settings: Settings = None,
    agent: Annotated[str | None, typer.Option(help="Whose deviations; everybody's if left out.")] = None,
    max_copies: Annotated[int, typer.Option(help="Every vector with up to so many of each original is tried.")] = 4,
    opponents: Annotated[str, typer.Option(help="market: honest, with their priors; any: dominance.")] = "market",
    horizons: Annotated[
        str | None, typer.Option(metavar="FIRST:LAST", help="Every horizon from first to last.")
    ] = None,
    withhold: Annotated[bool, typer.Option("--withhold", help="Also leave originals out; reported apart.")] = False,
    split: Annotated[bool, typer.Option("--split", help="Also use two accounts; reported apart.")] = False,
    copy_cost: Annotated[bool, typer.Option("--copy-cost", help="The fee per copy that would stop it.")] = False,
    tolerance: Annotated[float, typer.Option(help="The relative gain that counts as none; 0.005 is half a %.")] = 0.0,
    budget: Annotated[float | None, typer.Option(metavar="SECONDS", help="Stop searching after this time.")] = None,
    runs: Annotated[int | None, typer.Option(help="Pairs of runs for a candidate, where it samples.")] = None,
    seed: Annotated[int, typer.Option(help="The seed, where it samples.")] = 0,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write a report to look at.")] = None,
    certificate: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write what `verify` checks; of samples, a replay record.")
    ] = None,
    from_ledger: Annotated[
        str | None,
        typer.Option(
            metavar="DB",
            help="Instead of a market file: a season of a service (file or postgresql://..), priors fitted.",
        ),
    ] = None,
    market_name: Annotated[str | None, typer.Option("--market", help="Which market of the ledger.")] = None,
    season: Annotated[int | None, typer.Option(help="Which season of the ledger; the last if left out.")] = None,
    copy_odds: Annotated[float, typer.Option(help="Prior odds that two arms of an agent are copies.")] = 0.1,
    atoms: Annotated[int, typer.Option(help="Atoms of each fitted prior in the audit.")] = 3,
    as_json: AsJson = False,
) -> None:
    """Try to game a mechanism by registering copies: a verdict, the best attack, and the scope of both.

    Exit code 0: clone-proof, 1: exploitable, 3: undecided, 2: bad input.
    """
    for path in (html, certificate):
        if path is not None:
            check_place(path)  # before the work, not after it
    if from_ledger is not None:
        if any((market_file, mechanism, settings, horizons)):
            raise CloneproofError(
                "expected --from-ledger with none of MARKET.toml, --mechanism, --set and --horizons, since the ledger "
                "has the market; leave them out"
            )
        from cloneproof.cli.audit_season import audit_ledger

        search: dict[str, Any] = {"agent": agent, "max_copies": max_copies, "odds": copy_odds, "atoms": atoms}
        search |= {"opponents": opponents, "withhold": withhold, "tolerance": tolerance, "split": split}
        search |= {"copy_cost": copy_cost, "budget_seconds": budget, "runs": runs, "seed": seed}
        verdict = audit_ledger(from_ledger, market_name, season, as_json, html, certificate, search)
        raise typer.Exit(EXIT[verdict])
    if market_file is None or mechanism is None:
        raise CloneproofError("expected MARKET.toml and --mechanism NAME, or --from-ledger DB; give one of the two")
    market = load_market(market_file)
    with progress_bar() as bar:
        task = bar.add_task(f"auditing {mechanism}", total=None)
        found = run_audit(
            market,
            lambda own: chosen_mechanism(mechanism, settings, own),
            agent=agent,
            max_copies=max_copies,
            opponents=opponents,  # type: ignore[arg-type]
            withhold=withhold,
            tolerance=tolerance,
            horizons=horizons,
            split=split,
            copy_cost=copy_cost,
            budget_seconds=budget,
            runs=runs,
            seed=seed,
            progress=lambda done, total, what: bar.update(task, total=total, completed=done, description=what),
        )
    if as_json:
        print_json(found.to_dict())
    else:
        show(found, f"{mechanism} on {market_file}")
    if certificate is not None:
        write_certificate_of(found, certificate)
    if html is not None:
        from cloneproof.report.pages.audit_page import write_audit_page  # late: drawing takes a second to load

        write_audit_page(found, html)
    raise typer.Exit(EXIT[found.verdict])


def write_certificate_of(found: Audit, path: str) -> bool:
    """A certificate of an exact verdict, a replay record of a sampled one; `undecided` by exact means has neither."""
    if found.samples and found.worst.gain.kind != "proven":
        from cloneproof.analysis.replay_record import write_replay

        write_replay(found, path)
        note(f"the verdict rests on samples, so {path} is a replay record and not a certificate")
    elif found.verdict == "undecided":
        note(f"{path} is not written: 'undecided' claims nothing that could be certified")
        return False
    else:
        from cloneproof.analysis.certificate import write_certificate

        write_certificate(found, path)
    return True


def show(found: Audit, title: str) -> None:
    """Print the witness, the best other deviations, and the scope."""
    worst = found.worst
    table = new_table(
        f"{title}: {found.verdict}", "agent", "copies", "T", "honest", "with copies", "gain", "± error", "%"
    )
    best = sorted(found.tried, key=lambda one: one.relative_gain, reverse=True)
    rows = list(dict.fromkeys(_row(one) for one in [worst, *best]))
    for row in rows[:MOST_ROWS]:
        table.add_row(*row)
    for name, one in found.apart.items():
        table.add_section()
        table.add_row(f"{name}: {one.agent}", *_row(one)[1:])
    print_table(table)
    further = len(rows) - MOST_ROWS
    print("The first row is the witness." + (f" {further} further deviations are not shown." if further > 0 else ""))
    print(textwrap.fill(f"Scope: {found.scope}", width=100))
    for text in found.notes:
        note(text)


def _row(one: Witness) -> tuple[str, ...]:
    return (
        one.agent,
        ",".join(map(str, one.copies)),
        str(one.horizon),
        f"{one.honest.value:.6g}",
        f"{one.copied.value:.6g}",
        f"{one.gain.value:+.6g}",
        f"{one.gain.error:.1e}",
        f"{100 * one.relative_gain:+.3g}",
    )
