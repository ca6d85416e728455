"""`cloneproof log`: who seems to copy, what it gains, and what to run instead; from files, or a live market's ledger.

`logs` knows nothing of the service: a ledger is read here, and its rewards are handed over as a table.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

import cloneproof as cp
from cloneproof._lib.findings import read_known
from cloneproof.cli.advice import write_terms
from cloneproof.cli.options import (
    AsJson,
    HtmlFile,
    KnownFile,
    Seconds,
    Settings,
    check_files,
    chosen_mechanism,
    option,
    own_policy,
)
from cloneproof.cli.output import (
    code_with_known,
    command_progress,
    deliver,
    print_sections,
    working,
)
from cloneproof.cli.serve import service_package
from cloneproof.errors import LogError

if TYPE_CHECKING:
    from cloneproof.logs.originals import Lookalikes
    from cloneproof.logs.study import LogStudy, StudiedPolicy
    from cloneproof.runs.deadline import Deadline
    from cloneproof.serve.offline import LedgerRows

SQLITE: Final = b"SQLite format 3\0"  # first bytes of a database file
HURRIED: Final = 1e-3  # seconds of a study that begins with none left; who has equal titles is told in any case


def log(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE", help="CSV, Parquet or JSON lines; globs and folders work. Or the database of `serve`."
        ),
    ],
    market: Annotated[str | None, option("NAME", "In a database of `serve`: which market.")] = None,
    season: Annotated[
        int | None, option("N", "In a database of `serve`: which season.", show_default="all of them")
    ] = None,
    agent: Annotated[str | None, option("COLUMN", "The provider.")] = None,
    arm: Annotated[str | None, option("COLUMN", "The item that was served.")] = None,
    reward: Annotated[str | None, option("COLUMN", "The reward.")] = None,
    time: Annotated[str | None, option("COLUMN", "The time.")] = None,
    count: Annotated[str | None, option("COLUMN", "If a row is many rounds: how many.")] = None,
    total: Annotated[str | None, option("COLUMN", "If a row is many rounds: their total reward.")] = None,
    owners: Annotated[str | None, option("FILE", "Who owns which item, if the log does not say: two columns.")] = None,
    segment: Annotated[
        list[str] | None, option("COLUMN", "The user's segment, such as device; several are crossed.")
    ] = None,
    position: Annotated[
        str | None, option("COLUMN", "The place on the page, from 1; rates are corrected by it.")
    ] = None,
    same: Annotated[str | None, option("COLUMN,..", "Columns that identify items, such as title,url.")] = None,
    reward_range: Annotated[str | None, option("LOW:HIGH", "The range of rewards.", show_default="0:1")] = None,
    local_arms: Annotated[bool, option(None, "Item names are unique only within a provider.", "--local-arms")] = False,
    leave_out: Annotated[
        bool, option(None, "Skip faulty rows and count them, instead of stopping.", "--leave-out")
    ] = False,
    policy: Annotated[
        str | None,
        option(
            "NAME",
            "What you run now: a name from `cloneproof mechanisms`, or MODULE:NAME.",
            show_default="the mechanism of a live market",
        ),
    ] = None,
    settings: Settings = None,
    horizon: Annotated[
        int | None,
        option(
            "N",
            "Judge the policy over N rounds.",
            show_default="as many of the log's as time allows, or a live market's",
        ),
    ] = None,
    share: Annotated[
        float | None,
        option("PART", "The part of a reward that its provider is paid.", show_default="1, or a live market's"),
    ] = None,
    tolerance: Annotated[float, option("PART", "Ignore relative gains up to this.")] = 0.005,
    seconds: Seconds = None,
    seed: Annotated[int, option("N", "When sampling: the seed.")] = 0,
    statistics: Annotated[bool, option(None, "Only read the log and show its items.", "--statistics")] = False,
    known: KnownFile = None,
    html: HtmlFile = None,
    toml: Annotated[str | None, option("FILE", "Write the recommended terms of a live market.")] = None,
    market_file: Annotated[
        str | None,
        option("FILE", "Write the fitted market, for `audit` and `recommend`: each item has the average law."),
    ] = None,
    as_logged: Annotated[
        bool, option(None, "There, each item has what the log says of it, as 64 equally likely rates.", "--as-logged")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find copies in your log, and say what to run instead.

    Each row of the log is a round: which provider and item were served, and the reward. Columns that you do not name
    are guessed. A live market's seasons are read from its database, also while it is served. Also says what copies
    earn under --policy, or under every mechanism.

    Exit codes, for --policy or what a live market runs, in the market fitted to the log: 0 clone-proof, 1 exploitable,
    3 undecided. Also 3 if time was out before every question was answered; without a policy otherwise 0; bad input 2.
    With --known: 1 if a finding is not in it; a policy that is known to be exploitable does not count.
    """
    check_files(html, toml, drawn=False)
    if as_logged and market_file is None:
        raise LogError("expected --market-file FILE with --as-logged, got none; name the file")
    accepted = read_known(known)
    if settings and (policy is None or ":" in policy):
        raise LogError("expected --set with the name of a mechanism as --policy, got it without; leave it out")
    from cloneproof.runs.deadline import Deadline

    clock = Deadline(cp.Search(seconds=seconds).seconds)
    ledger = read_ledger(files, market, season, clock)
    columns: dict[str, Any] = {
        "agent": agent, "arm": arm, "reward": reward, "time": time, "count": count,
        "total": total, "position": position, "segment": segment or (),
    }  # fmt: skip
    if ledger is not None:
        columns |= {name: columns[name] or name for name in ledger.columns}
    with command_progress() as bar:
        task = bar.add_task("reading", total=100)
        logged = cp.read_log(
            files if ledger is None else ledger.columns, **columns, owners=owners,
            same=[name for name in (same or "").split(",") if name], reward_range=parsed_range(reward_range),
            local_arms=local_arms or ledger is not None, leave_out=leave_out, seconds=seconds,
            progress=lambda share: bar.update(task, completed=100 * share),
        )  # fmt: skip
    if ledger is not None:
        logged = replace(logged, notes=(ledger.words, *logged.notes), places=(ledger.place,))
    if statistics:
        deliver(logged, as_json, details=True)
        return
    from cloneproof.logs.study import study_log
    from cloneproof.report.log_study import first_look

    def first(alike: Sequence[Lookalikes]) -> None:
        """Print what is known before anything takes long."""
        if not as_json:
            print_sections(first_look(logged, alike))
            print(flush=True)

    left = None if clock.left is None else max(clock.left, HURRIED)
    with working("looking") as tell:
        study = study_log(
            logged, *_policy(policy, settings, ledger), tolerance=tolerance,
            seconds=left, **_terms(horizon, share, ledger),
            seed=seed, progress=tell, first=first,
        )  # fmt: skip
    study = study.accepting(accepted)
    if market_file is not None:
        cp.save_market(study.market_file(as_logged), market_file)
        study = replace(study, notes=(*study.notes, written(market_file, as_logged)))
    deliver(study, as_json, html, details=True)
    if toml is not None:
        write_terms(study.recommendation, toml)
    raise typer.Exit(code_with_known(study, exit_code(study)))


def read_ledger(places: Sequence[str], market: str | None, season: int | None, clock: Deadline) -> LedgerRows | None:
    """Read the rewards of a live market, if the place is the database of a service; None if it has files of rows."""
    if market is None and season is None and not any(map(_is_database, places)):
        return None
    if len(places) > 1:
        raise LogError(f"expected one database of `cloneproof serve`, got {len(places)} places; read one at a time")
    service_package()
    from cloneproof.serve.offline import read_rows

    return read_rows(places[0], market, season, clock)


def _is_database(place: str) -> bool:
    """Return whether a place is an SQLite file or the address of a PostgreSQL database."""
    if "://" in place:
        service_package()
        from cloneproof.serve.storage import is_postgres

        return is_postgres(place)
    if not os.path.isfile(place):
        return False
    with open(place, "rb") as file:
        return file.read(len(SQLITE)) == SQLITE


def _policy(name: str | None, settings: Sequence[str] | None, ledger: LedgerRows | None) -> tuple[StudiedPolicy, str]:
    """Return the policy to judge and its name: as asked for, or else what the live market runs."""
    if name is None:
        return (None, "") if ledger is None else (lambda _fitted: ledger.mechanism, ledger.spec.mechanism)
    if ":" in name:
        return own_policy(name), name
    return (lambda fitted: chosen_mechanism(name, settings, fitted)), name


def _terms(horizon: int | None, share: float | None, ledger: LedgerRows | None) -> dict[str, Any]:
    """Return rounds, share and end of the market to study: as asked for, or else those of the live market."""
    asked = {"horizon": horizon, "share": share}
    terms: dict[str, Any] = {}
    if ledger is not None:
        spec = ledger.spec
        terms = {"horizon": spec.horizon, "traffic": spec.horizon, "share": spec.share, "ends": spec.ends}
    return terms | {name: value for name, value in asked.items() if value is not None}


def written(path: str, as_logged: bool) -> str:
    """Say what each item of a market file has."""
    what = "what the log says of it, as 64 equally likely rates" if as_logged else "the average law of 200 draws"
    return f"{path} is the market of this log: each item has {what}"


def exit_code(study: LogStudy) -> int:
    """Return the exit code of the verdict: undecided if a question is left, unless the policy is exploitable."""
    from cloneproof.cli.audit import EXIT

    if study.interrupted:
        return 130
    verdict = None if study.verdict is None else study.verdict.verdict
    if verdict != "exploitable" and (study.left or (verdict is None and study.policy)):
        return EXIT["undecided"]
    return 0 if verdict is None else EXIT[verdict]


def parsed_range(text: str | None) -> tuple[float, float]:
    """Parse a range such as `1:5`.

    >>> parsed_range("1:5"), parsed_range(None)
    ((1.0, 5.0), (0.0, 1.0))
    """
    if text is None:
        return (0.0, 1.0)
    try:
        low, high = (float(end) for end in text.split(":"))
    except ValueError:
        raise LogError(f"expected a range of rewards as LOW:HIGH such as 1:5, got {text!r}; write both") from None
    return low, high
