"""`cloneproof verify` (check a certificate, or repeat a record's runs) and `reproduce` (the paper's statements).

Exit codes of verify: 0 accepted or replayed, 1 rejected or not reproduced, 3 out of time, 2 unreadable.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from cloneproof._sections import Paragraph, Section, Table
from cloneproof.cli.options import AsJson, Settings, chosen_mechanism, option
from cloneproof.cli.output import deliver, note, print_json, print_sections, working
from cloneproof.errors import CloneproofError
from cloneproof.market.toml import load_market


def verify(
    certificate: Annotated[str, typer.Argument(metavar="CERTIFICATE.json", help="A file from `audit --certificate`.")],
    market_file: Annotated[
        str | None, option("MARKET.toml", "Accept only a certificate about this market.", "--market")
    ] = None,
    mechanism: Annotated[
        str | None, option("NAME", "Accept only a certificate about this mechanism.", "--mechanism", "-m")
    ] = None,
    settings: Settings = None,
    seconds: Annotated[float, option("SECONDS", "Time for a replay record.", "--seconds")] = 600.0,
    as_json: AsJson = False,
) -> None:
    """Check a certificate, or repeat the runs of a replay record.

    A certificate proves a verdict about the market and mechanism printed with it. Give --market and --mechanism to
    reject one about anything else. A replay record of a sampled verdict is evidence, not proof.

    Exit codes: 0 accepted or replayed, 1 rejected or not reproduced, 3 out of time, 2 unreadable.
    """
    from cloneproof.analysis.verify import replay_work
    from cloneproof.analysis.verify import verify as verified

    if mechanism is not None and market_file is None:
        raise CloneproofError("expected --market MARKET.toml with --mechanism, got no market; give both, as in `audit`")
    if settings and mechanism is None:
        raise CloneproofError("expected --mechanism NAME with --set, got no mechanism; name it, as in `audit`")
    market = None if market_file is None else load_market(market_file)
    declared = None
    if mechanism is not None:
        declared = lambda at_horizon: chosen_mechanism(mechanism, settings, at_horizon)  # noqa: E731
    work = replay_work(certificate)
    if work is not None:
        print(f"a replay record of {work}, drawn again for at most {seconds:g} s", file=sys.stderr)
    verification = verified(certificate, market=market, mechanism=declared, seconds=seconds)
    deliver(verification, as_json)
    raise typer.Exit(3 if verification.out_of_time else 0 if verification.holds else 1)


def reproduce(
    out: Annotated[str, option("DIR", "Write into this folder; an interrupted run resumes there.")],
    only: Annotated[list[str] | None, option("NAME", "Check only this statement; repeatable.")] = None,
    quick: Annotated[bool, option(None, "Use smaller sizes; takes about 2½ CPU minutes.", "--quick")] = False,
    seed: Annotated[int, option("N", "The seed; equal seeds give equal bytes.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Check every statement of the paper.

    Writes report.html, results.json and certificates.
    """
    from cloneproof.engines.monte_carlo.sampler import available_threads
    from cloneproof.mechanisms.online.streams import checked_seed
    from cloneproof.reproduce.run_rows import reproduce as run

    checked_seed(seed)  # before a folder is made
    with working("reading") as tell:
        finish = (lambda line: None) if sys.stderr.isatty() else note  # a line a row where nobody sees a bar
        results = run(out, only or (), "quick" if quick else "full", seed, available_threads(), tell, finish)
    if as_json:
        print_json(results)
    else:
        rows = [(name, f"{row['number']}. {row['title']}", row["verdict"]) for name, row in results["rows"].items()]
        table = Table.of(("row", "statement", "verdict"), rows, left=["statement", "verdict"])
        page = Paragraph(f"The page is {os.path.join(out, 'report.html')}")
        print_sections([Section(f"{len(rows)} statements, {results['scale']} scale", [table, page])])
