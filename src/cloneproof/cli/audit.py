"""`cloneproof audit`: can the mechanism be gamed? Exit code 0 clone-proof, 1 exploitable, 3 undecided, 2 bad input."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from cloneproof._files import write_whole
from cloneproof.analysis.audit.audit import audit as run_audit
from cloneproof.analysis.audit.result import Audit, Verdict
from cloneproof.analysis.audit.search_result import Witness
from cloneproof.analysis.search import Search
from cloneproof.cli.options import (
    UNANSWERED,
    AsJson,
    BoundsOption,
    Caught,
    Device,
    HtmlFile,
    JsonFile,
    MarketFile,
    MechanismName,
    RuleName,
    Seconds,
    Settings,
    Thorough,
    check_files,
    mechanism_or_rule,
    option,
    policy_box,
)
from cloneproof.cli.output import deliver, note, working
from cloneproof.errors import CloneproofError
from cloneproof.market.toml import load_market, market_to_toml


def shell_words(audit: Audit, smallest: Witness, arguments: Sequence[str]) -> str:
    """Return one line of shell that finds the attack again, among as few copies and rounds as it has."""
    arguments = [one for k, one in enumerate(arguments) if "--write-test" not in arguments[max(0, k - 1) : k + 1]]
    kept = ["--agent", smallest.agent, "--max-copies", str(max(smallest.copies))]
    if len(smallest.market.agents) == len(audit.market.agents):
        kept += ["--horizons", str(smallest.horizon)]
    return shlex.join(["cloneproof", *arguments, *kept])


AGAIN = 4  # times as many pairs as the audit drew: a written test is to be surer than the audit was


def pytest_file(audit: Audit, policy: str | None, rule: str | None, seed: int) -> str:
    """Return a pytest file in which the smallest attack is tried again."""
    smallest = audit.smallest or audit.worst
    place, _, name = (policy or "").rpartition(":")
    folder, module = os.path.split(os.path.abspath(place).removesuffix(".py") if place.endswith(".py") else place)
    if policy is None:
        options = "".join(f", {key}={value!r}" for key, value in audit.mechanism.parameters.items())
        name = f"cp.mechanism({audit.mechanism.name!r}{options})"
        name = name if rule is None else f"cp.Mechanism(arm=cp.rule({rule!r}{options}))"
    runs = [
        f"runs={AGAIN * one.progress.runs}, seed={one.seed}"
        for one in audit.samples
        if one.market is smallest.market and (one.agent, one.copies) == (smallest.agent, smallest.copies)
    ]
    drawn = smallest.gain.kind in ("confidence", "asymptotic")
    search = f", search=cp.Search({(runs or [f'seed={seed}'])[0]})" if drawn else ""
    lines = [
        f'"""Copies {smallest.copies} of {smallest.agent} paid in {smallest.horizon:,} rounds."""',
        *(["", "import sys"] if folder else []),
        "",
        "import cloneproof as cp",
        "from cloneproof.testing import assert_clone_proof",
        *(["", f"sys.path.insert(0, {folder!r})"] if folder else []),
        *([f"from {module} import {name}"] if policy else []),
        "",
        f"MARKET = {chr(34) * 3}",
        f"{market_to_toml(smallest.market).strip()}{chr(34) * 3}",
        "",
        "",
        "def test_these_copies_do_not_pay(tmp_path):",
        '    (tmp_path / "market.toml").write_text(MARKET)',
        f"    attack = {{{smallest.agent!r}: {smallest.copies}}}",
        f'    assert_clone_proof({name}, tmp_path / "market.toml", attack=attack{search})',
        "",
    ]
    return "\n".join(lines)


EXIT: dict[Verdict, int] = {"clone-proof": 0, "exploitable": 1, "undecided": UNANSWERED}


def audit(
    market_file: MarketFile,
    mechanism: MechanismName = None,
    policy: Annotated[
        str | None,
        option("MODULE:NAME", "Audit your own policy (a class or a BlackBox) instead; FILE.py:NAME works too."),
    ] = None,
    rule: RuleName = None,
    settings: Settings = None,
    agent: Annotated[str | None, option("NAME", "Audit only this agent; default: all.")] = None,
    max_copies: Annotated[int, option("N", "Try all ways to register each original up to N times.")] = 4,
    opponents: Annotated[str, option("KIND", "market: the others are honest; any: they may do anything.")] = "market",
    horizons: Annotated[str | None, option("FIRST:LAST", "Audit every horizon from FIRST to LAST.")] = None,
    also: Annotated[
        list[str] | None,
        option(
            "NAME", "Also report what withholding, splitting, informed, variants or copy-cost is worth; repeatable."
        ),
    ] = None,
    variants: Annotated[int, option("N", "With --also variants: register N variants of each original.")] = 5,
    spread: Annotated[
        float | None, option("SD", "With --also variants: how much their log-odds differ; default 0.05.")
    ] = None,
    new: Annotated[
        float | None, option("CHANCE", "Instead of --spread: the chance that a variant is a new item.")
    ] = None,
    caught: Caught = 0.0,
    tolerance: Annotated[float, option("PART", "Ignore relative gains up to this; 0.005 is half a percent.")] = 0.0,
    allow_undecided: Annotated[
        bool, option(None, "Exit with 0 if undecided and none of those tried gains more.")
    ] = False,
    seconds: Seconds = None,
    thorough: Thorough = False,
    runs: Annotated[int | None, option("N", "When sampling: pairs of runs for each candidate.")] = None,
    seed: Annotated[int, option("N", "When sampling: the seed.")] = 0,
    bounds: BoundsOption = "asymptotic",
    device: Device = "auto",
    html: HtmlFile = None,
    json_file: JsonFile = None,
    test: Annotated[
        str | None, option("FILE", "Write a pytest file that fails while the smallest attack pays.", "--write-test")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Try to game a mechanism by registering copies.

    Prints a verdict, the best attack, and the scope: what the verdict covers.

    Exit codes: 0 clone-proof (or undecided, if allowed), 1 exploitable, 3 undecided, 2 bad input.
    """
    check_files(html, json_file, test)  # before the work, not after it
    search = Search(max_copies, seconds, runs, seed, bounds, device, variants, spread, new, thorough)  # type: ignore[arg-type]
    if sum(option is not None for option in (mechanism, policy, rule)) != 1:
        raise CloneproofError(
            "expected one of --mechanism NAME, --rule MODULE:NAME and --policy MODULE:NAME, got several or none; give "
            "one"
        )
    market = load_market(market_file)
    name, audited = mechanism_or_rule(mechanism, rule, settings) if policy is None else policy_box(policy, settings)
    with working(f"auditing {name}") as tell:
        result = run_audit(
            market, audited, agent=agent, opponents=opponents, tolerance=tolerance, horizons=horizons,  # type: ignore[arg-type]
            also=also or (), caught=caught, search=search, progress=tell,  # type: ignore[arg-type]
        )  # fmt: skip
    deliver(result, as_json, json_file, html)
    if result.smallest is not None and not as_json and sys.argv[1:2] == ["audit"]:
        print(f"In the shell: {shell_words(result, result.smallest, sys.argv[1:])}")
    if seconds is not None and not as_json:
        print(f"The search took {result.seconds:.1f} s and had {seconds:g} s (--seconds).")
    if test is not None and result.smallest is None:
        note(f"{test} is not written: no attack on honest others was found")
    elif test is not None:
        write_whole(test, pytest_file(result, policy, rule, seed))
    raise typer.Exit(130 if result.interrupted else 0 if result.passes(allow_undecided) else EXIT[result.verdict])
