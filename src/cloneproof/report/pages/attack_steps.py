"""A witness told step by step: who registers what, what honesty earns, what the copies earn, and why."""

from __future__ import annotations

from cloneproof.analysis.audit.verdict import Audit, Witness
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.report.formatting import NARROW, agent_words, copies_sentence, error_words, number, percent, printable

AttackStep = tuple[str, str]  # a heading of a few words, and what happens
FAMILIES = {"bernoulli": "Bernoulli", "gaussian": "Gaussian"}
MOST_NAMED = 6  # opponents that get a sentence of their own


def attack_steps(audit: Audit) -> list[AttackStep]:
    """The steps of the deviation that the audit ends with."""
    worst = audit.worst
    name, share, family = printable(worst.agent), worst.market.share, worst.market.family.name
    agent = next(agent for agent in worst.market.agents if agent.name == worst.agent)
    steps = [
        (
            "The platform",
            f"{printable(audit.mechanism.name)} runs for {worst.horizon:,} rounds. Each round serves one registered "
            f"arm, rewards are {printable(FAMILIES.get(family, family))}, and whoever owns the arm is paid "
            f"{100 * share:g}{NARROW}% of its reward.",
        ),
        ("The provider", f"{name} has {agent_words(agent)}. {_what_the_agent_knows(worst, name)}"),
    ]
    if len(worst.market.agents) > 1:
        steps.append(("The others", _others(worst)))
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


def _what_the_agent_knows(worst: Witness, name: str) -> str:
    agent = next(agent for agent in worst.market.agents if agent.name == worst.agent)
    sure = all(prior.atoms is not None and len(prior.atoms) == 1 for prior in agent.priors)
    if sure:
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
    """What in the mechanism's structure lets copies pay; general words where we know no better."""
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
    if arm.name == "ucb":
        return (
            "Every arm is tried again when its bonus has grown enough, and a copy starts with a bonus of its own. "
            "Copies shift when the other arms have their turn; near a horizon at which an honest list would just try a "
            "bad arm again, that turn can come later, or fall to a good one."
        )
    return (
        "Copies are explored as if they were new, so they change how often each original is tried, and by that what "
        "the mechanism goes on to serve."
    )
