"""`cloneproof serve` (run markets as a service), `backup` and `replay` of its ledger.

A configuration file can set every option that has an environment variable. Flags override variables, variables override
the file, and the file overrides defaults.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cloneproof._lib.checks import known, one_of, toml_tables
from cloneproof._lib.data import to_data
from cloneproof.cli.options import AsJson, option
from cloneproof.cli.output import note, print_json
from cloneproof.errors import CloneproofError, FileError, brief

_KINDS: Mapping[type, tuple[tuple[type, ...], str]] = {  # by the kind of the default
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
}
_TEXT = ((str,), "text in quotes")
CliCommand = Any  # click's, or the copy of it that newer versions of typer bring


def settings(command: CliCommand) -> dict[str, Any]:
    """Return the settings of a command by their names in a file: `agent_rate` for CLONEPROOF_SERVE_AGENT_RATE."""
    prefix = f"CLONEPROOF_{(command.name or '').upper()}_"
    named = {str(setting.envvar): setting for setting in command.params if str(setting.envvar).startswith(prefix)}
    by_name = {name.removeprefix(prefix).lower(): setting for name, setting in named.items()}
    return {name: setting for name, setting in by_name.items() if name != "config"}  # a file does not name itself


def read_config(context: typer.Context, path: str | None) -> str | None:
    """Make the values of a file the context's defaults; the callback of `--config`."""
    if path:
        context.default_map = config_values(context.command, path)
    return path


def config_values(command: CliCommand, path: str) -> dict[str, Any]:
    """Return the values of a file by the command's own names; raises an error for whatever does not fit."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as problem:
        raise FileError(f"expected a configuration file, got {path!r}: {problem}; check the path") from None
    data = toml_tables(text, path, FileError)
    table = data.get(command.name or "")
    if set(data) != {command.name} or not isinstance(table, dict):
        raise FileError(f"expected one table, [{command.name}], in {path!r}, got {sorted(data)}; put everything in it")
    there, values = settings(command), {}
    for name, value in table.items():
        parameter = there[known(name, there, "setting", FileError)]
        types, words = _KINDS.get(type(parameter.default), _TEXT)
        if not isinstance(value, types) or isinstance(value, bool):
            raise FileError(f"expected {words} as {name} in {path!r}, got {brief(value)}; correct it")
        values[str(parameter.name)] = value
    return values


def _setting(name: str, metavar: str, help_text: str, **more: Any) -> Any:  # noqa: ANN401 (typer's own)
    """Declare an option that the environment variable CLONEPROOF_SERVE_NAME can set too."""
    return option(metavar, help_text, envvar=f"CLONEPROOF_SERVE_{name}", **more)


def _database(help_text: str) -> Any:  # noqa: ANN401
    return typer.Argument(metavar="DB", envvar="CLONEPROOF_SERVE_DATABASE", help=help_text)


def serve(
    place: Annotated[str, _database("An SQLite file (created if missing), a PostgreSQL address, or :memory:.")],
    config: Annotated[
        str | None,
        _setting(
            "CONFIG",
            "FILE",
            "Read settings from the table [serve] of a TOML file.",
            is_eager=True,
            callback=read_config,
        ),
    ] = None,
    host: Annotated[
        str, _setting("HOST", "HOST", "Listen on this address; keep loopback unless a TLS proxy is in front.")
    ] = "127.0.0.1",
    port: Annotated[int, _setting("PORT", "PORT", "Listen on this port; 0 picks a free one.")] = 8642,
    agent_rate: Annotated[
        float, _setting("AGENT_RATE", "CALLS", "Calls a second allowed to an agent's key; 0: no limit.")
    ] = 20.0,
    log: Annotated[str, _setting("LOG", "FORM", "Log to standard error as text or json.")] = "text",
    log_level: Annotated[
        str, _setting("LOG_LEVEL", "LEVEL", "Log from this level on: debug, info (each call), warning or error.")
    ] = "warning",
    platform_key_file: Annotated[
        str | None, _setting("PLATFORM_KEY_FILE", "FILE", "Accept the key in this file as a platform's.")
    ] = None,
    auditor_key_file: Annotated[
        str | None,
        _setting("AUDITOR_KEY_FILE", "FILE", "Accept the key in this file as an auditor's (for Prometheus)."),
    ] = None,
    terms: Annotated[
        str | None, _setting("TERMS", "FILE", "Declare the market of these terms (TOML), if there is none of its name.")
    ] = None,
    create_key: Annotated[str | None, option("ROLE", "Print a new key (platform, agent or auditor) and exit.")] = None,
    agent: Annotated[str | None, option("NAME", "With --create-key agent: which agent.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run clone-proof markets as a service.

    It has an HTTP API, a web page and a ledger; decisions and rewards count exactly once.
    """
    run = service_package()
    from cloneproof.serve.http.monitoring import configure_log

    configure_log(log, log_level)
    if create_key is not None:
        key = run.create_key(place, one_of(create_key, ("platform", "agent", "auditor"), "the role of a key"), agent)
        if stat.S_ISREG(os.fstat(1).st_mode):  # `> platform_key`: a key is for its owner alone
            os.fchmod(1, 0o600)
        print_json({"key": key}) if as_json else print(key)
        return

    from cloneproof.serve.storage import display_place

    def announce(address: str) -> None:
        if as_json:
            print_json({"address": address})
        else:
            print(f"serving {display_place(place)} at {address}", flush=True)
        if place == ":memory:":
            note("nothing is kept when this process ends")

    files = {"platform": platform_key_file, "auditor": auditor_key_file}
    key_files = {role: path for role, path in files.items() if path}
    run.run(place, host, port, None if agent_rate == 0 else agent_rate, announce, key_files, terms)


def service_package() -> Any:  # noqa: ANN401
    """Import the service, or raise an error that names the missing package."""
    try:
        from cloneproof.serve import run
    except ModuleNotFoundError as missing:
        raise CloneproofError(
            f"expected the packages of the service, got no {missing.name!r}; install cloneproof[serve]"
        ) from None
    return run


def backup(
    place: Annotated[str, _database("The SQLite file of a service, running or not.")],
    target: Annotated[str, typer.Argument(metavar="FILE", help="The new file.")],
    as_json: AsJson = False,
) -> None:
    """Back up the database file of a service, also while it runs.

    All keys of the copy are revoked. For PostgreSQL use pg_dump.
    """
    service_package()
    from cloneproof.serve.offline import back_up

    entries = back_up(place, target)
    if as_json:
        print_json({"file": target, "entries": entries})
        return
    words = ", ".join(f"{name} ({count:,} entries)" for name, count in entries.items()) or "no market yet"
    print(f"copied to {target}: {words}; check it with cloneproof replay {target}")


def replay(
    place: Annotated[str, _database("The SQLite file or PostgreSQL address of a service, running or not.")],
    market: Annotated[str | None, option("NAME", "Replay only this market; default: all.")] = None,
    as_json: AsJson = False,
) -> None:
    """Repeat every decision of a ledger and compare.

    Decisions, payments and hashes must be the same, bit for bit. Names the first entry that differs.

    Exit codes: 0 all fit, 1 an entry differs, 2 bad input, 3 all that can be checked fits (a season whose dice are not
    published yet).
    """
    service_package()
    from cloneproof.report.words import printable
    from cloneproof.serve.offline import replay_all

    results = replay_all(place, market)
    if as_json:
        print_json(to_data(results))
    else:
        for result in results:
            print(printable(str(result)))
    codes = {result.exit_code for result in results}
    raise typer.Exit(1 if 1 in codes else max(codes, default=0))
