"""The comparison as a table, with what there is to say below it."""

from __future__ import annotations

from collections.abc import Sequence

from cloneproof.advice.comparison import ComparedMechanism
from cloneproof.cli.display.output import new_table, print_table
from cloneproof.engines.estimate import Estimate

WIDTH = 96  # of a remark


def show_comparison(rows: Sequence[ComparedMechanism], source: str, tolerance: float, budget: float) -> None:
    """Print the table."""
    columns = ("mechanism", "verdict", "gain, %", "with copies", "regret", "attacked", "time")
    table = new_table(f"{source}: the best attack by copies on each mechanism", *columns, right=2)
    for row in rows:
        table.add_row(*_cells(row))
    print_table(table)
    print(f"Gains of up to {tolerance:.1%} count as none. Sampled mechanisms had {budget:g} s each:")
    for row in rows:
        if (remark := _remark(row)) != "":
            print("  " + remark[:WIDTH])


def _cells(row: ComparedMechanism) -> tuple[str, ...]:
    time = f"{row.seconds:.1f} s"
    if row.verdict is None:
        return row.name, "not audited", "", "", _number(row.regret, row.exact), "", time
    gain = f"{100 * row.relative_gain:+.1f}"
    copies, verdict = f"{row.agent} {','.join(map(str, row.copies))}", str(row.verdict)
    if row.verdict == "undecided":  # what the samples do not rule out
        gain = f"at most {100 * row.relative_gain:+.2g}"
    if row.verdict == "clone-proof" and not row.exact:  # samples of one deviation add nothing
        gain, copies = "none", "proven" if row.state == "proof" else "at 99 %"
    if row.state == "none tried pays":
        copies, verdict = f"{row.tried} tried", "none pays"
    return row.name, verdict, gain, copies, _number(row.regret, row.exact), _number(row.attacked, row.exact), time


def _number(estimate: Estimate | None, exact: bool) -> str:
    if estimate is None:
        return ""
    return f"{estimate.value:,.0f}" if exact else f"{estimate.value:,.0f} ± {estimate.error:,.0f}"


def _remark(row: ComparedMechanism) -> str:
    if row.remark:
        return f"{row.name}: {row.remark}"
    if row.exact or row.gain is None:
        return ""
    if row.state == "none pays at 99 %":
        return f"{row.name}: that copies do not pay holds at 99 %, by sampled worlds that stand for all copies"
    if row.verdict == "clone-proof":
        return f"{row.name}: that copies do not pay is proven; its regret is sampled"
    return (
        f"{row.name}: {row.tried} deviations sampled, this one's gain is {row.gain.value:+.1f} ± {row.gain.error:.0f}"
    )
