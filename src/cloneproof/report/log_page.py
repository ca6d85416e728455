"""Answers of a log as one page: who seems to copy and what that earned, what the policy pays for, what to run.

The page calls nobody anything. It says which arms look like one item, how often such a finding is wrong, and what the
registration that is in the log is worth against registering each item once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cloneproof._version import __version__
from cloneproof.analysis.copying.records import CopyGroup, Duplicates
from cloneproof.engines.estimate import Estimate
from cloneproof.logs.copy_worth import CopyWorth
from cloneproof.logs.log import LoggedArm
from cloneproof.logs.study import LogStudy
from cloneproof.report.page import render
from cloneproof.report.words import (
    NARROW,
    choice_sentence,
    copies_sentence,
    copies_words,
    cost_words,
    error_words,
    exploring_words,
    gain_words,
    names_words,
    number,
    percent,
    price_sentence,
    printable,
    printable_lines,
    regret_words,
    relative_words,
    sentence,
    shorten,
)

MOST_GROUPS, MOST_NAMED, MOST_ARMS = 12, 12, 60
Z95 = 1.96


def log_page(study: LogStudy) -> str:
    """Return the page as text; equal studies give equal texts."""
    log, found, verdict = study.log, study.findings.found, study.verdict
    near = [group for group in study.findings.groups if not group.found]
    advised = study.recommendation.choice if study.recommendation and study.recommendation.ranked else None
    return render(
        "log_page.html",
        {
            "title": _title(study),
            "verdict": "undecided" if verdict is None else verdict.verdict,
            "kicker": f"{log.rounds:,} rounds, {len(log.arms):,} arms of {len(log.agents):,} agents",
            "sentence": _sentence(study),
            "tiles": _tiles(study),
            "duplicates": [_duplicates(one) for one in study.findings.duplicates[:MOST_GROUPS]],
            "further_duplicates": max(0, len(study.findings.duplicates) - MOST_GROUPS),
            "groups": [_group(group, study) for group in found[:MOST_GROUPS]],
            "accounts": [
                (printable(account), printable(owner), f"{rounds:,}", f"{paid:,.6g}")
                for account, owner, rounds, paid in study.accounts
            ],
            "further_groups": max(0, len(found) - MOST_GROUPS),
            "near": _nearest(near[0]) if near else "",
            "level": f"{100 * study.findings.level:g}{NARROW}%",
            "guarantee": sentence(printable_lines(study.findings.guarantee)),
            "finding_notes": [printable_lines(text) for text in study.findings.notes],
            "worth": [_worth(each, study) for each in study.worth],
            "policy": printable(study.policy),
            "horizon": f"{study.market.horizon:,}",
            "unit": _unit(study),
            "attack": _attack(study),
            "scope": "" if verdict is None else sentence(printable_lines(verdict.scope)),
            "mechanisms": [_mechanism(row) for row in study.comparison],
            "advice": _advice(study),
            "alternatives": _alternatives(study),
            "parameters": "" if advised is None else ", ".join(f"{k} = {v}" for k, v in advised.parameters.items()),
            "traffic": _traffic(study),
            "backtest": _backtest(study),
            "uniform": study.backtest is not None and study.backtest.uniform,
            "rates": [_rate(arm, study) for arm in _shown(log.arms, found)],
            "further_arms": max(0, len(log.arms) - MOST_ARMS),
            "facts": _facts(study),
            "faults": [printable(fault) for fault in log.faults],
            "notes": [sentence(printable_lines(note)) for note in study.notes],
            "footer": f"cloneproof {__version__} · {study.seconds:,.1f} s",
        },
    )


def _title(study: LogStudy) -> str:
    groups = len(study.findings.found)
    if groups == 0:
        return "No arms look like one item"
    return "1 group of arms looks like one item" if groups == 1 else f"{groups} groups of arms look like one item each"


def _sentence(study: LogStudy) -> str:
    if study.verdict is None and study.policy:
        return f"Whether {printable(study.policy)} pays for copies was not decided; the notes at the end say why."
    if study.verdict is None:
        return "No policy was named, so all mechanisms stand below; which of them made the log is not claimed."
    words = {
        "exploitable": "pays for copies in the market fitted to this log",
        "clone-proof": "does not pay for copies in the market fitted to this log",
        "undecided": "could not be decided in the market fitted to this log",
    }
    return f"{printable(study.policy)} {words[study.verdict.verdict]}: {study.verdict.verdict}."


def _unit(study: LogStudy) -> str:
    column = study.log.columns.reward or study.log.columns.total or "reward"
    return printable("clicks" if column in ("click", "clicks", "clicked", "is_click") else f"units of {column}")


def _scaled(value: Estimate, study: LogStudy) -> Estimate:
    width = float(study.log.high - study.log.low)
    return Estimate(value.value * width, value.error * width, value.kind, value.method)


def _tiles(study: LogStudy) -> list[tuple[str, str, str]]:
    log = study.log
    tiles = [("Mean reward a round", f"{log.unscaled(log.mean):.4g}", f"over {log.rounds:,} rounds")]
    if study.worth and (best := study.worth[0]).gain is not None:
        who = shorten(printable(best.owner.name), 30)
        earned = number(_scaled(best.gain, study), sign=True)
        tiles.append((f"Most earned by copies: {who}", earned, f"{_unit(study)} in {study.market.horizon:,} rounds"))
    if study.recommendation is not None and study.recommendation.ranked:
        choice, rounds = study.recommendation.choice, study.recommendation.market.horizon
        cost = _scaled(choice.regret, study)
        tiles.append((f"{choice.name} costs", number(cost), f"{_unit(study)} in {rounds:,} rounds"))
    return tiles


def _duplicates(one: Duplicates) -> tuple[str, ...]:
    """Return the text, what it is, whose, and the arms."""
    return (
        shorten(printable(one.text), 60),
        f"{'equal' if one.equal else 'near'}\N{NO-BREAK SPACE}{one.feature}",
        names_words(one.agents, 3, 30),
        names_words([arm for _, arm in one.arms], letters=30),
    )


def _traffic(study: LogStudy) -> str:
    """Return the policy beside the advice, in the log's unit over its own traffic."""
    found = study.traffic
    if found is None or study.recommendation is None:
        return ""
    honest, advised = _amount(found.honest, study), _amount(found.advised, study)
    also = ""
    if found.as_logged is not None:
        also = f", and {_amount(found.as_logged, study)} with the copies that the log shows"
    return (
        f"Over {found.rounds:,} rounds of the owners studied, against the best item in every round: "
        f"{printable(study.policy)} loses {honest} {_unit(study)} if each item is registered once{also}; "
        f"{study.recommendation.choice.name} loses {advised}."
    )


def _amount(value: Estimate, study: LogStudy, sign: bool = False) -> str:
    """In the log's unit, with its error where that is more than rounding."""
    scaled = _scaled(value, study)
    error = f" {error_words(scaled)}" if scaled.error > 1e-6 * abs(scaled.value) else ""
    return number(scaled, sign=sign) + error


def _group(group: CopyGroup, study: LogStudy) -> tuple[str, str, list[tuple[str, ...]], int]:
    """Whose arms, the evidence in a sentence or two, the arms as a table, and how many are not in it."""
    rows: list[tuple[str, ...]] = []
    for row in group.rows[:MOST_NAMED]:
        owner = f"{shorten(printable(row.agent), 40)}: " if len(group.agents) > 1 else ""
        text, mean = shorten(printable(row.text), 60), f"{study.log.unscaled(row.mean):.4g}"
        rows.append((f"{owner}{shorten(printable(row.arm), 40)}", text, f"{row.rounds:,}", mean, row.matched))
    return _agents(group), sentence(printable_lines(group.evidence)), rows, len(group.rows) - len(rows)


def _agents(group: CopyGroup) -> str:
    return " and ".join(shorten(printable(agent), 40) for agent in group.agents)


def _nearest(group: CopyGroup) -> str:
    named = names_words([arm for _, arm in group.arms])
    return f"{named} of {_agents(group)}. {sentence(printable_lines(group.evidence))}"


def _worth(each: CopyWorth, study: LogStudy) -> tuple[str, ...]:
    name = shorten(printable(each.owner.name), 60)
    copies = copies_words(each.owner.copies)
    if each.copied is None or each.once is None or each.gain is None:
        return name, copies, "", "", printable_lines(each.remark)
    copied, once = (number(_scaled(value, study)) for value in (each.copied, each.once))
    return name, copies, copied, once, _amount(each.gain, study, sign=True)


def _attack(study: LogStudy) -> str:
    found = study.verdict
    if found is None:
        return ""
    worst = found.worst
    honest, copied, gain = (_scaled(value, study) for value in (worst.honest, worst.copied, worst.gain))
    return (
        f"{printable(worst.agent)} registers {copies_sentence(worst.copies)} and expects {number(copied)} in "
        f"{worst.horizon:,} rounds, in place of {number(honest)} with each item once: "
        f"{number(gain, sign=True)} ({error_words(gain)}), {percent(worst)}."
    )


def _mechanism(row: Any) -> tuple[str, ...]:  # noqa: ANN401 (a row of the comparison)
    gain = "" if row.gain is None else relative_words(row.relative_gain)
    if row.verdict == "clone-proof":
        gain = "none"
    regret = "" if row.regret is None else number(row.regret)
    return row.name, row.verdict or "not evaluated", gain, regret


def _advice(study: LogStudy) -> list[str]:
    found = study.recommendation
    if found is None:
        return []
    if not found.fits:
        return [sentence(choice_sentence(found)), found.advice]
    choice = found.choice
    cost = _scaled(choice.regret, study)
    unit = f"{number(cost)} {_unit(study)} over {found.market.horizon:,} rounds of the owners studied"
    lines = [
        f"Run {choice.name}. It costs {printable(cost_words(found))}: {unit}.",
        choice.promise,
        price_sentence(found),
    ]
    return [sentence(line) for line in lines if line]


def _alternatives(study: LogStudy) -> list[tuple[str, ...]]:
    found = study.recommendation
    if found is None:
        return []
    return [
        (each.name, regret_words(each.regret), exploring_words(each), gain_words(each.gain))
        for each in found.ranked[:4]
    ]


def _backtest(study: LogStudy) -> list[tuple[str, ...]]:
    if study.backtest is None:
        return []

    def mean(value: Estimate | None) -> str:
        if value is None:
            return ""
        low, width = float(study.log.low), float(study.log.high - study.log.low)
        return f"{low + width * value.value:.4g} ± {width * value.error:.2g}"

    rows: list[tuple[str, ...]] = [("the log's own", mean(study.backtest.logged), "", "", "")]
    for row in study.backtest.rows:
        numbers = ("overlap too thin", "") if row.thin else (mean(row.snips), mean(row.doubly_robust))
        again = "" if row.replayed is None else f"{mean(row.replayed)} over {row.replayed_rounds:,} rounds"
        rows.append((printable(row.name), *numbers, f"{row.effective:,.0f}", again))
    return rows


def _shown(arms: Sequence[LoggedArm], found: Sequence[CopyGroup]) -> list[LoggedArm]:
    """Arms of the findings first, then those served most."""
    inside = {place for group in found for place in group.arms}
    return sorted(arms, key=lambda arm: ((arm.agent, arm.arm) not in inside, -arm.rounds))[:MOST_ARMS]


def _rate(arm: LoggedArm, study: LogStudy) -> tuple[str, ...]:
    """Agent and arm, rounds, the mean with Wilson's 95 % interval (binary rewards have the largest variance)."""
    n, p = arm.rounds, arm.mean
    centre = (p + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 * math.sqrt(p * (1 - p) / n + Z95**2 / (4 * n * n)) / (1 + Z95**2 / n)
    low, high = (study.log.unscaled(max(0.0, min(1.0, value))) for value in (centre - half, centre + half))
    name = shorten(printable(arm.arm), 40)
    return (
        f"{shorten(printable(arm.agent), 40)}: {name}",
        f"{n:,}",
        f"{study.log.unscaled(p):.4g}",
        f"{low:.4g} to {high:.4g}",
    )


def _facts(study: LogStudy) -> list[tuple[str, str]]:
    log = study.log
    used = ", ".join(f"{role}: {name}" for role, name in log.columns.to_dict().items() if isinstance(name, str))
    return [
        ("rows", f"{log.rows:,}"),
        ("left out", f"{log.left_out:,} rows"),
        ("columns", printable(used)),
        ("range of rewards", f"{float(log.low):g} to {float(log.high):g}"),
        ("sums", sentence(log.exact)),
        ("files", printable(", ".join(Path(place).name for place in log.places[:3])) or "a table"),
    ]
