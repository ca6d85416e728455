"""A log and what it answers, as tables in a terminal."""

from __future__ import annotations

import textwrap

from cloneproof.cli.display.compare_output import show_comparison
from cloneproof.cli.display.output import new_table, note, print_table, printable
from cloneproof.cli.display.recommend_output import show_recommendation
from cloneproof.engines.estimate import Estimate
from cloneproof.logs.attack import LogVerdict
from cloneproof.logs.backtest import Backtest
from cloneproof.logs.log import Log
from cloneproof.logs.study import LogStudy

MOST_ROWS = 20
WIDTH = 100


def show_log(log: Log) -> None:
    """The arms that were served most, and what is exact."""
    table = new_table(
        f"{log.rounds:,} rounds, {len(log.arms):,} arms of {len(log.agents):,} agents", "agent", "arm", "rounds",
        "sum", "mean", right=2,
    )  # fmt: skip
    ranked = sorted(log.arms, key=lambda arm: -arm.rounds)
    for arm in ranked[:MOST_ROWS]:
        whole = log.low * arm.rounds + arm.total * (log.high - log.low)
        table.add_row(arm.agent, arm.arm, f"{arm.rounds:,}", f"{float(whole):,.6g}", f"{log.unscaled(arm.mean):.5g}")
    print_table(table)
    further = len(ranked) - MOST_ROWS
    print((f"{further:,} further arms are not shown. " if further > 0 else "") + log.exact.capitalize() + ".")


def show_study(study: LogStudy) -> None:
    """Who seems to copy, what it pays, what to run."""
    show_log(study.log)
    _show_findings(study)
    _show_worth(study)
    if study.verdict is not None:
        _show_verdict(study.verdict, study)
    elif study.comparison:
        show_comparison(study.comparison, "the market fitted to the log", 0.005, study.seconds)
        print("No policy was named, and which of these made the log is not claimed.")
    if study.recommendation is not None:
        show_recommendation(study.recommendation, None)
    if study.backtest is not None:
        _show_backtest(study.backtest, study.log)
    for text in study.notes[len(study.log.notes) :]:
        note(printable(text))


def _show_findings(study: LogStudy) -> None:
    found = study.findings.found
    table = new_table(
        f"Arms that look like one item: {len(found)} groups", "agents", "arms", "e-value", "weight", right=2
    )
    for group in found[:MOST_ROWS]:
        arms = ", ".join(arm for _, arm in group.arms)
        table.add_row(", ".join(group.agents), arms, f"{group.e_value:.3g}", f"{group.weight:.3g}")
    if found:
        print_table(table)
    else:
        print("No arms look like one item.")
    print(textwrap.fill(printable(study.findings.guarantee), width=WIDTH))


def _show_worth(study: LogStudy) -> None:
    if not study.worth:
        return
    columns = ("owner", "registered", "with copies", "each once", "difference", "± error")
    table = new_table(f"What the copies earned under {study.policy}, {study.horizon:,} rounds", *columns, right=2)
    for each in study.worth:
        numbers = [_number(value) for value in (each.copied, each.once, each.gain)]
        error = "" if each.gain is None else f"{each.gain.error:.2g}"
        table.add_row(each.owner.name, ",".join(map(str, each.owner.copies)), *numbers, error)
    print_table(table)
    for each in study.worth:
        if each.remark:
            print(textwrap.fill(printable(f"{each.owner.name}: {each.remark}"), width=WIDTH))


def _show_verdict(found: LogVerdict, study: LogStudy) -> None:
    columns = ("agent", "copies", "T", "honest", "with copies", "gain", "± error", "%")
    table = new_table(f"{study.policy} in the market fitted to the log: {found.verdict}", *columns)
    numbers = [f"{each.value:,.5g}" for each in (found.honest, found.copied, found.gain)]
    copies = ",".join(map(str, found.copies))
    error, relative = f"{found.gain.error:.2g}", f"{100 * found.relative_gain:+.3g}"
    table.add_row(found.agent, copies, f"{found.horizon:,}", *numbers, error, relative)
    print_table(table)
    print(textwrap.fill(printable(f"Scope: {found.scope}"), width=WIDTH))


def _show_backtest(tested: Backtest, log: Log) -> None:
    columns = ("policy", "SNIPS", "doubly robust", "rows left", "replayed", "rounds")
    table = new_table("On the log itself: mean reward a round", *columns)
    table.add_row("the log's own", _mean(tested.logged, log), "", "", "", "")
    for row in tested.rows:
        numbers = ("overlap too thin", "") if row.thin else (_mean(row.snips, log), _mean(row.doubly_robust, log))
        again = "" if row.replayed is None else _mean(row.replayed, log)
        table.add_row(row.name, *numbers, f"{row.effective:,.0f}", again, f"{row.replayed_rounds:,}" if again else "")
    print_table(table)


def _mean(value: Estimate, log: Log) -> str:
    return f"{log.unscaled(value.value):.4g} ± {value.error * float(log.high - log.low):.2g}"


def _number(value: Estimate | None) -> str:
    return "" if value is None else f"{value.value:,.5g}"
