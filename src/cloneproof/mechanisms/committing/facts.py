"""Facts of explore-then-commit: how long the trials are, and who has the traffic after them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloneproof.mechanisms.facts import ANEW, AwardStart, Compared, Facts, Setting, items_of

if TYPE_CHECKING:
    from cloneproof.mechanisms.mechanism import Mechanism

TRIALS = (
    "The agents compete by their average over a trial of {:,} rounds, exploration included. Honest exploration gives "
    "every original its turn, and the average is that of good and bad ones. Copies fill the trial with one original: "
    "the average is now sometimes worse and sometimes better, and as only the best average wins all the rounds that "
    "remain, the better cases count for more than the worse ones."
)
FORGOTTEN = (
    "An arm is explored too little to tell good from bad reliably. A copied original is explored more: copies are "
    "exploration that the mechanism forgot, and the better choice lasts to the end."
)


def committing_facts(mechanism: Mechanism, setting: Setting) -> Facts:
    """Return the facts of explore-then-commit, on one level or two."""
    items, rounds = items_of(setting), mechanism.agent_rounds * setting.agents
    seen = f"All {items} are shown; those that do better have more of the traffic."
    if mechanism.agent is None:
        rounds = mechanism.arm_rounds * (setting.market.originals if setting.market else 0)
    elif mechanism.commits_to_agent:
        seen = (
            f"Each of {items} is shown at least {mechanism.arm_rounds:,} times; then one provider has all traffic, for "
            "the item that did best."
        )
    elif mechanism.uniform_agents:
        seen = f"Every provider has 1/{setting.agents:,} of the traffic, in the end for the item of its that did best."
    latest = float(min(setting.horizon, rounds))
    why = FORGOTTEN if mechanism.commits_to_arm else ANEW
    uneven = len(set(setting.copies)) > 1 and mechanism.commits_to_agent
    return Facts(
        seen,
        AwardStart(latest, latest) if mechanism.agent is None or mechanism.agent_rounds > 1 else None,
        compares=compared(mechanism),
        by_arm=mechanism.agent is None,
        because="providers do not compete for rounds" if mechanism.uniform_agents else "",
        why_copies_pay=TRIALS.format(mechanism.agent_rounds) if uneven else why,
    )


def compared(mechanism: Mechanism) -> tuple[Compared, ...]:
    """Return what is looked at anew in every decision, as nothing is committed to."""
    agents: tuple[Compared, ...] = () if mechanism.agent is None or mechanism.commits_to_agent else ("agents",)
    arms: Compared = "arms" if mechanism.agent is None else "arms of an agent"
    return agents if mechanism.commits_to_arm else (*agents, arms)
