"""An audit as one self-contained HTML page: no network, no scripts, inline figures."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from cloneproof._version import package_versions
from cloneproof.analysis.audit.verdict import Audit, CopyLimit, InformedGain, Witness
from cloneproof.market.market import Agent
from cloneproof.market.toml import market_to_toml
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.report.audit_figures import audit_figures
from cloneproof.report.page import PACKAGES, render
from cloneproof.report.words import (
    NARROW,
    agent_words,
    copies_sentence,
    copies_words,
    error_words,
    kind_words,
    number,
    percent,
    printable,
    printable_lines,
    sentence,
    verdict_sentence,
)

AttackStep = tuple[str, str]  # a heading of a few words, and what happens
FAMILIES = {"bernoulli": "Bernoulli", "gaussian": "Gaussian"}
MOST_NAMED = 6  # opponents that get a sentence of their own


def attack_steps(audit: Audit) -> list[AttackStep]:
    """Return the steps of the deviation that the audit ends with."""
    worst = audit.worst
    name, share, family = printable(worst.agent), worst.market.share, worst.market.family.name
    agent = next(agent for agent in worst.market.agents if agent.name == worst.agent)
    steps = [
        (
            "The platform",
            f"{printable(audit.mechanism.name)} runs for {worst.horizon:,} rounds. Each round serves one registered "
            f"arm, rewards are {printable(FAMILIES.get(family, family))}, and its owner is paid "
            f"{100 * share:g}{NARROW}% of its reward.",
        ),
        ("The provider", f"{name} has {agent_words(agent)}. {_what_the_agent_knows(agent)}"),
    ]
    if len(worst.market.agents) > 1:
        steps.append(("The others", _others(worst)))
    if worst.argued:
        return [*steps, ("The argument", "No copies were evaluated; the argument is in the scope below.")]
    steps += [
        (
            "Honest",
            f"{name} registers {copies_sentence((1,) * agent.count)} and expects {number(worst.honest)} "
            f"({error_words(worst.honest)}).",
        ),
        (
            "With copies",
            f"{name} registers {copies_sentence(worst.copies)}, {sum(worst.copies):,} arms in all, and expects "
            f"{number(worst.copied)} ({error_words(worst.copied)}).",
        ),
        ("The difference", f"{number(worst.gain, sign=True)} ({error_words(worst.gain)}): {percent(worst)}."),
    ]
    if audit.verdict == "exploitable":
        steps.append(("Why", why_it_pays(audit.mechanism, worst)))
    return steps


def _what_the_agent_knows(agent: Agent) -> str:
    name = printable(agent.name)
    if all(prior.atoms is not None and len(prior.atoms) == 1 for prior in agent.priors):
        return f"{name} knows their quality." if agent.count > 1 else f"{name} knows its quality."
    return f"{name} cannot tell beforehand which of them is good." if agent.count > 1 else "Nobody knows it beforehand."


def _others(worst: Witness) -> str:
    others = [agent for agent in worst.market.agents if agent.name != worst.agent]
    sentences = []
    for agent in others[:MOST_NAMED]:
        copies = worst.all_copies.get(agent.name, (1,) * agent.count)
        registers = "registers honestly" if set(copies) == {1} else f"registers {copies_sentence(copies)}"
        sentences.append(f"{printable(agent.name)} has {agent_words(agent)}, and {registers}.")
    if len(others) > MOST_NAMED:
        sentences.append(f"{len(others) - MOST_NAMED} more are listed in the market below.")
    return " ".join(sentences)


def why_it_pays(mechanism: Mechanism, worst: Witness) -> str:
    """Why copies pay under the mechanism's structure; a general answer if no specific one is known."""
    agent, arm, arms = mechanism.agent, mechanism.arm, sum(worst.copies)
    if not mechanism.scoring.allows(arms):
        return (
            f"{arms:,} arms are more than the {mechanism.scoring.max_arms} that get a score, so the agent forgoes the "
            "award; what it earns comes from the trial and from what happens where nobody has a score."
        )
    uneven = len(set(worst.copies)) > 1
    if agent is not None and agent.commits and not mechanism.scoring.partial and uneven:
        return (
            f"The agents compete by their average over a trial of {agent.explore:,} rounds, exploration included. "
            "Honest exploration gives every original its turn, and the average is that of good and bad ones. Copies "
            "fill the trial with one original: the average is now sometimes worse and sometimes better, and as only "
            "the best average wins all the rounds that remain, the better cases count for more than the worse ones."
        )
    if arm.commits:
        return (
            "An arm is explored too little to tell good from bad reliably. A copied original is explored more: copies "
            "are exploration that the mechanism forgot, and the better choice lasts to the end."
        )
    if arm.index == "ucb":
        return (
            "Every arm is tried again when its bonus has grown enough, and a copy starts with a bonus of its own. "
            "Copies shift when the other arms have their turn; near a horizon at which an honest list would just try a "
            "bad arm again, that turn can come later, or fall to a good one."
        )
    return (
        "Copies are explored as if they were new, so they change how often each original is tried, and by that what "
        "the mechanism goes on to serve."
    )


def audit_page(audit: Audit) -> str:
    """Return the page as text; equal audits give equal texts."""
    return render("audit_page.html", audit_facts(audit))


def audit_facts(audit: Audit) -> dict[str, Any]:
    """Return the values of the template."""
    worst = audit.worst
    return {
        "verdict": audit.verdict,
        "mechanism": printable(audit.mechanism.name),
        "sentence": verdict_sentence(audit),
        "tiles": _tiles(audit),
        "figures": audit_figures(audit),
        "steps_title": "What was audited" if worst.argued else _STEPS_TITLES[audit.verdict],
        "steps": attack_steps(audit),
        "columns": ["copies", "honest", "deviating", "gain", "relative"],
        "agents": [_row(name, copies_words(w.copies), w) for name, w in _best_of_each_agent(audit) if not w.argued],
        "apart": _beside(audit),
        "scope": sentence(printable_lines(str(audit.scope))),
        "tolerance": f"{100 * audit.tolerance:g}{NARROW}%" if audit.tolerance else "none: any gain counts",
        "certainty": kind_words(worst.gain),
        "notes": [sentence(printable_lines(note)) for note in audit.notes],
        "composition": "" if (made := printable(audit.mechanism)) == audit.mechanism.name else f" = {made}",
        "claims": [printable(claim) for claim in audit.mechanism.claims],
        "parameters": [(key, _plain(value)) for key, value in audit.mechanism.parameters.items()],
        "market": printable_lines(_compact(market_to_toml(worst.market))),
        "copies": "; ".join(f"{printable(name)} {copies_words(copies)}" for name, copies in worst.all_copies.items()),
        "seconds": f"{audit.seconds:,.1f} s" if audit.seconds else "",
        "versions": package_versions(*PACKAGES).items(),
    }


_STEPS_TITLES = {
    "exploitable": "The attack, step by step",
    "clone-proof": "The deviation that comes closest",
    "undecided": "The deviation that could not be ruled out",
}


def _tiles(audit: Audit) -> list[tuple[str, str, str]]:
    """Return the numbers in large type: what, how much, how sure."""
    worst = audit.worst
    if worst.argued:
        most = f"at most {number(worst.gain.high)}" if worst.gain.high > 0 else "none"
        return [("Gain", most, "by an argument, not computed")]
    return [
        ("Honest payoff", number(worst.honest), error_words(worst.honest)),
        (f"With copies {copies_words(worst.copies)}", number(worst.copied), error_words(worst.copied)),
        ("Gain", number(worst.gain, sign=True), f"{percent(worst)}, {error_words(worst.gain)}"),
    ]


def _best_of_each_agent(audit: Audit) -> Iterable[tuple[str, Witness]]:
    """Return the best deviation of every agent, if several were audited; for the worst one's agent that one."""
    best = {audit.worst.agent: audit.worst}
    for witness in audit.tried:
        known = best.get(witness.agent)
        if known is None or (known is not audit.worst and witness.gain.value > known.gain.value):
            best[witness.agent] = witness
    return best.items() if len(best) > 1 else ()


def _row(name: str, deviation: str, found: Witness | CopyLimit | InformedGain) -> tuple[str, ...]:
    other = found.informed if isinstance(found, InformedGain) else found.copied
    gain = f"{number(found.gain, sign=True)} {error_words(found.gain)}"
    return printable(name), deviation, number(found.honest), number(other), gain, percent(found)


def _beside(audit: Audit) -> list[tuple[str, ...]]:
    """Rows beside the verdict: other deviations, an agent that knows its means, ever more copies."""
    rows = [_row(f"{kind} ({w.agent})", copies_words(w.copies), w) for kind, w in audit.also.items()]
    if audit.informed is not None:
        rows.append(_row(f"informed ({audit.informed.agent})", "by its means", audit.informed))
    return rows + [_row(f"limit ({x.agent})", f"ever more of original {x.original}", x) for x in audit.limits]


def _compact(toml: str) -> str:
    r"""Put lists of numbers on one line.

    >>> _compact("values = [\n    0.2,\n    0.8,\n]")
    'values = [0.2, 0.8]'
    """
    numbers = re.compile(r"\[\n((?: +[-+.\w]+,\n)+)\]")
    return numbers.sub(lambda match: f"[{', '.join(match[1].replace(',', ' ').split())}]", toml)


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else printable(value)
