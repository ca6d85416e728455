"""An audit on the command line: as a table, as JSON, and the file that `verify` checks."""

from __future__ import annotations

import textwrap

from cloneproof.analysis.audit.copy_limit import CopyLimit
from cloneproof.analysis.audit.informed_gain import InformedGain
from cloneproof.analysis.audit.verdict import Audit, Witness
from cloneproof.cli.display.output import new_table, note, print_table
from cloneproof.engines.estimate import Estimate

MOST_ROWS = 12


def write_evidence(audit: Audit, path: str) -> bool:
    """A certificate of an exact verdict, a replay record of a sampled one; `undecided` by exact means has neither."""
    if audit.samples and audit.worst.gain.kind != "proven":
        from cloneproof.analysis.replay_record import write_replay

        write_replay(audit, path)
        note(f"the verdict rests on samples, so {path} is a replay record and not a certificate")
    elif audit.verdict == "undecided":
        note(f"{path} is not written: 'undecided' claims nothing that could be certified")
        return False
    else:
        from cloneproof.analysis.certificate import write_certificate

        write_certificate(audit, path)
    return True


def show_audit(audit: Audit, title: str) -> None:
    """Print the witness, the best other deviations, and the scope."""
    worst = audit.worst
    verdict = f"{audit.verdict} ({audit.about_tried})" if audit.about_tried else audit.verdict
    table = new_table(f"{title}: {verdict}", "agent", "copies", "T", "honest", "with copies", "gain", "± error", "%")
    best = sorted(audit.tried, key=lambda witness: witness.relative_gain, reverse=True)
    rows = list(dict.fromkeys(_row(witness) for witness in [worst, *best]))
    for row in rows[:MOST_ROWS]:
        table.add_row(*row)
    for name, witness in audit.apart.items():
        table.add_section()
        table.add_row(f"{name}: {witness.agent}", *_row(witness)[1:])
    if audit.limits:
        table.add_section()
    for limit in audit.limits:
        table.add_row(*_limit_row(limit))
    if audit.informed is not None:
        table.add_section()
        table.add_row(*_informed_row(audit.informed))
    print_table(table)
    further = len(rows) - MOST_ROWS
    print("The first row is the witness." + (f" {further} further deviations are not shown." if further > 0 else ""))
    print(textwrap.fill(f"Scope: {audit.scope}", width=100))
    for text in audit.notes:
        note(text)


def _row(witness: Witness) -> tuple[str, ...]:
    copies = ",".join(map(str, witness.copies))
    payoffs = (witness.honest, witness.copied, witness.gain)
    return (witness.agent, copies, str(witness.horizon), *_numbers(*payoffs, witness.relative_gain))


def _limit_row(limit: CopyLimit) -> tuple[str, ...]:
    numbers = _numbers(limit.honest, limit.copied, limit.gain, limit.relative_gain)
    return (f"limit: {limit.agent}", f"ever more of {limit.original}", str(limit.horizon), *numbers)


def _informed_row(gain: InformedGain) -> tuple[str, ...]:
    numbers = _numbers(gain.honest, gain.informed, gain.gain, gain.relative_gain)
    return (f"informed: {gain.agent}", "by its means", str(gain.horizon), *numbers)


def _numbers(honest: Estimate, other: Estimate, gain: Estimate, relative: float) -> tuple[str, ...]:
    return (
        f"{honest.value:.6g}",
        f"{other.value:.6g}",
        f"{gain.value:+.6g}",
        f"{gain.error:.1e}",
        f"{100 * relative:+.3g}",
    )
