"""Facts of bandits: all arms stay candidates to the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloneproof.mechanisms.facts import ANEW, Compared, Facts, Setting, items_of

if TYPE_CHECKING:
    from cloneproof.mechanisms.mechanism import Mechanism

BONUSES = (
    "Every arm is tried again when its bonus has grown enough, and a copy starts with a bonus of its own. Copies shift "
    "when the other arms have their turn; near a horizon at which an honest list would just try a bad arm again, that "
    "turn can come later, or fall to a good one."
)


def bandit_facts(mechanism: Mechanism, setting: Setting) -> Facts:
    """Return the facts of rules by priority on one level or two."""
    seen = f"All {items_of(setting)} are shown; those that do better have more of the traffic."
    why = BONUSES if mechanism.arm.index == "ucb" else ANEW
    compared: tuple[Compared, ...] = ("arms",) if mechanism.agent is None else ("agents", "arms of an agent")
    return Facts(seen, compares=compared, by_arm=mechanism.agent is None, why_copies_pay=why)
