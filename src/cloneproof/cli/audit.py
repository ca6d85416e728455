"""`cloneproof audit`: can the mechanism be gamed? Exit code 0 clone-proof, 1 exploitable, 3 undecided, 2 bad input."""

from __future__ import annotations

from typing import Annotated

import typer

from cloneproof.analysis.audit.audit import audit as run_audit
from cloneproof.analysis.audit.result import Audit, Verdict
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
from cloneproof.market.toml import load_market


def write_evidence(audit: Audit, path: str) -> None:
    """Write a certificate of an exact verdict or a replay record of a sampled one; an exact `undecided` has neither."""
    if audit.samples and audit.worst.gain.kind != "proven":
        from cloneproof.analysis.replay_record import write_replay

        write_replay(audit, path)
        note(f"the verdict rests on samples, so {path} is a replay record and not a certificate")
    elif audit.verdict == "undecided":
        note(f"{path} is not written: 'undecided' claims nothing that could be certified")
    else:
        from cloneproof.analysis.certificate.writer import write_certificate

        write_certificate(audit, path)


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
    bounds: BoundsOption = "distribution-free",
    device: Device = "auto",
    html: HtmlFile = None,
    json_file: JsonFile = None,
    certificate: Annotated[str | None, option("FILE", "Write a certificate (or replay record) for `verify`.")] = None,
    as_json: AsJson = False,
) -> None:
    """Try to game a mechanism by registering copies.

    Prints a verdict, the best attack, and the scope: what the verdict covers.

    Exit codes: 0 clone-proof (or undecided, if allowed), 1 exploitable, 3 undecided, 2 bad input.
    """
    check_files(html, json_file, certificate)  # before the work, not after it
    if certificate is not None and caught:
        raise CloneproofError("expected --certificate or --caught, got both; a certificate holds lists that are played")
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
    deliver(result, result.to_dict(), as_json, json_file, html)
    if seconds is not None and not as_json:
        print(f"The search took {result.seconds:.1f} s and had {seconds:g} s (--seconds).")
    if certificate is not None:
        write_evidence(result, certificate)
    raise typer.Exit(130 if result.interrupted else 0 if result.passes(allow_undecided) else EXIT[result.verdict])
