"""`cloneproof audit`: can the mechanism be gamed? Exit code 0 clone-proof, 1 exploitable, 3 undecided, 2 bad input."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

import cloneproof as cp
from cloneproof._lib.files import write_whole
from cloneproof.cli.options import (
    UNANSWERED,
    AsJson,
    Details,
    Device,
    HtmlFile,
    MarketFile,
    MechanismName,
    PolicyName,
    Seconds,
    Settings,
    check_files,
    mechanism_or_policy,
    option,
)
from cloneproof.cli.output import deliver, note, working

if TYPE_CHECKING:
    from cloneproof.audits.result import Audit, Verdict
    from cloneproof.audits.search_result import Witness
    from cloneproof.evaluation.search import Search

AGAIN = 4  # times as many pairs as the audit drew: a written test is to be surer than the audit was
OUTPUTS = ("--html", "--write-test", "--agent", "--max-copies")  # not repeated


def shell_words(audit: Audit, arguments: Sequence[str], most: int) -> str:
    """Return the line of shell that finds the worst attack again, among the lists of its agent."""
    kept, rest = list[str](), iter(arguments)
    for word in rest:
        if word == "--details":
            continue
        if word in OUTPUTS:
            next(rest, None)
        elif word.partition("=")[0] not in OUTPUTS:
            kept.append(word)
    worst = audit.worst
    return shlex.join(["cloneproof", *kept, "--agent", worst.agent, "--max-copies", str(min(most, max(worst.copies)))])


@dataclass(frozen=True)
class Audited:
    """What was audited, as Python code."""

    name: str  # an expression
    imports: tuple[str, ...] = ()

    @classmethod
    def of(cls, audit: Audit, policy: str | None, boxed: bool) -> Audited:
        """Return a policy, which has to be imported, or the mechanism or rule with its parameters."""
        if policy is None or not boxed:
            options = "".join(f", {key}={value!r}" for key, value in audit.mechanism.parameters.items())
            made = f"cp.mechanism({audit.mechanism.name!r}{options})"
            return cls(made if policy is None else f"cp.bandit(cp.rule({policy!r}{options}))")
        place, _, name = policy.rpartition(":")
        if not place.endswith(".py"):
            return cls(name, (f"from {place} import {name}",))
        folder, module = os.path.split(os.path.abspath(place).removesuffix(".py"))
        return cls(name, ("import sys", f"sys.path.insert(0, {folder!r})", f"from {module} import {name}"))


def python_words(audit: Audit, audited: Audited, market_file: str, search: Search) -> str:
    """Return lines of Python that repeat the worst attack."""
    from cloneproof.report.words import drawn

    worst = audit.worst
    agent, copies, made = worst.agent, worst.copies, audited.name
    if audited.imports:
        made = f"{made} if isinstance({made}, cp.BlackBox) else cp.BlackBox({made})"
    play = f"[cp.evaluate(market, mechanism, copies).payoff[{agent!r}] for copies in ({{}}, {{{agent!r}: {copies}}})]"
    if drawn(worst):
        play = f"cp.gain(market, mechanism, {agent!r}, {copies}, search=cp.Search({_runs(audit, worst, 1, search)}))"
    system = [line for line in audited.imports if line == "import sys"]
    return "\n".join(
        [
            *system,
            "import cloneproof as cp",
            *audited.imports[len(system) :],
            f"market = cp.load_market({str(market_file)!r})",
            f"mechanism = {made}",
            f"print({play})",
        ]
    )


def _runs(audit: Audit, found: Witness, times: int, search: Search) -> str:
    """Return the options with which a sampled attack is drawn again, with so many times as many pairs."""
    for one in audit.samples:
        if one.market is found.market and (one.agent, one.copies) == (found.agent, found.copies):
            return f"runs={times * one.progress.runs}, seed={one.seed}"
    return f"seed={search.seed}" if search.runs is None else f"runs={times * search.runs}, seed={search.seed}"


def pytest_file(audit: Audit, smallest: Witness, audited: Audited, search: Search) -> str:
    """Return a pytest file in which the smallest attack is tried again."""
    from cloneproof.market.toml import market_to_toml
    from cloneproof.report.words import drawn

    again = f", search=cp.Search({_runs(audit, smallest, AGAIN, search)})" if drawn(smallest) else ""
    system, *own = audited.imports if len(audited.imports) > 1 else ("", *audited.imports)
    path, imports = (own[:1], own[1:]) if system else ([], own)
    lines = [
        f'"""Copies {smallest.copies} of {smallest.agent} paid in {smallest.horizon:,} rounds."""',
        *(["", system] if system else []),
        "",
        "import cloneproof as cp",
        "from cloneproof.testing import assert_clone_proof",
        *(["", *path] if path else []),
        *imports,
        "",
        f"MARKET = {chr(34) * 3}",
        f"{market_to_toml(smallest.market).strip()}{chr(34) * 3}",
        "",
        "",
        "def test_these_copies_do_not_pay(tmp_path):",
        '    (tmp_path / "market.toml").write_text(MARKET)',
        f"    attack = {{{smallest.agent!r}: {smallest.copies}}}",
        f'    assert_clone_proof({audited.name}, tmp_path / "market.toml", attack=attack{again})',
        "",
    ]
    return "\n".join(lines)


EXIT: dict[Verdict, int] = {"clone-proof": 0, "exploitable": 1, "undecided": UNANSWERED}


def audit(
    market_file: MarketFile,
    mechanism: MechanismName = None,
    policy: PolicyName = None,
    settings: Settings = None,
    agent: Annotated[str | None, option("NAME", "Audit only this agent; default: all.")] = None,
    max_copies: Annotated[int, option("N", "Try all ways to register each original up to N times.")] = 4,
    opponents: Annotated[str, option("KIND", "market: the others are honest; any: they may do anything.")] = "market",
    also: Annotated[
        list[str] | None,
        option("NAME", "Also report what withholding, splitting or informed is worth; repeatable."),
    ] = None,
    tolerance: Annotated[float, option("PART", "Ignore relative gains up to this; 0.005 is half a percent.")] = 0.0,
    allow_undecided: Annotated[
        bool, option(None, "Exit with 0 if undecided and none of those tried gains more.")
    ] = False,
    seconds: Seconds = None,
    runs: Annotated[int | None, option("N", "When sampling: pairs of runs for each candidate.")] = None,
    seed: Annotated[int, option("N", "When sampling: the seed.")] = 0,
    device: Device = "auto",
    html: HtmlFile = None,
    test: Annotated[
        str | None, option("FILE", "Write a pytest file that fails while the smallest attack pays.", "--write-test")
    ] = None,
    details: Details = False,
    as_json: AsJson = False,
) -> None:
    """Try to game a mechanism by registering copies.

    Prints the verdict, what copies earn, and what was tried; the scope is under --details and on the page (--html).

    Exit codes: 0 clone-proof (or undecided, if allowed), 1 exploitable, 3 undecided, 2 bad input.
    """
    check_files(html, test)  # before the work, not after it
    search = cp.Search(max_copies, seconds, runs, seed, device=device)  # type: ignore[arg-type]
    market = cp.load_market(market_file)
    name, made = mechanism_or_policy(mechanism, policy, settings)
    own = made(market) if policy is not None else None
    audited = made if own is None else own
    with working(f"auditing {name}") as tell:
        result = cp.audit(
            market, audited, agent=agent, opponents=opponents, tolerance=tolerance,  # type: ignore[arg-type]
            also=also or (), search=search, progress=tell,  # type: ignore[arg-type]
        )  # fmt: skip
    audited_code = Audited.of(result, policy, isinstance(own, cp.BlackBox))
    to_do, found = list[tuple[str, str]](), result.verdict == "exploitable" and opponents != "any"
    if found and sys.argv[1:2] == ["audit"]:
        to_do = [("Again", f"`{shell_words(result, sys.argv[1:], max_copies)}`")]
    if result.verdict != "clone-proof":
        own_policies = f" --policy {shlex.quote(policy)}" if policy else ""
        to_do += [("Instead", f"`cloneproof recommend {shlex.quote(market_file)}{own_policies}`")]
    deliver(result, as_json, html, details, to_do)
    if found and details and not as_json:
        print(f"To repeat it in Python:\n{python_words(result, audited_code, market_file, search)}")
    if seconds is not None and not as_json:
        print(f"The search took {result.seconds:.1f} s and had {seconds:g} s (--seconds).")
    smallest = None if test is None else cp.smallest_attack(result)
    if test is not None and smallest is None:
        note(f"{test} is not written: no attack on honest others was found")
    elif test is not None and smallest is not None:
        write_whole(test, pytest_file(result, smallest, audited_code, search))
    raise typer.Exit(130 if result.interrupted else 0 if result.passes(allow_undecided) else EXIT[result.verdict])
