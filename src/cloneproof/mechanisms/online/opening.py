"""What opens a session, checked: the registration, the seed and the numbers of the platform."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cloneproof._checks import is_one_line, real, whole
from cloneproof.errors import MechanismError, SessionError, brief
from cloneproof.market.copies import MOST_ARMS
from cloneproof.market.family import BOUNDED, RewardFamily, reward_family
from cloneproof.market.market import HORIZON_LIMIT
from cloneproof.market.rewards import gaussian
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.registration import Registration

SEED_LIMIT: Final = 1 << 63


class SessionTerms(NamedTuple):
    """All that a session is opened with."""

    mechanism: Mechanism
    registration: Registration
    horizon: int
    seed: int
    share: float
    rewards: RewardFamily
    window: int | None = None


def checked_terms(
    mechanism: Mechanism,
    registration: Registration,
    horizon: int,
    seed: int,
    share: float,
    rewards: RewardFamily | str | Mapping[str, Any] | None,
    window: int | None = None,
) -> SessionTerms:
    """The terms of a session, after a check of all that was given."""
    if not isinstance(mechanism, Mechanism):
        raise MechanismError(f"expected a mechanism, got {brief(mechanism)}; make one with cp.mechanism(name, ..)")
    rounds, portion = whole(horizon), real(share)
    if rounds is None or not 1 <= rounds <= HORIZON_LIMIT:
        raise SessionError(
            f"expected a horizon that is a whole number from 1 to 10^15, got {brief(horizon)}; count the rounds"
        )
    if portion is None or not 0 < portion <= 1:
        raise SessionError(f"expected a share above 0 and at most 1, got {brief(share)}; 0.4 pays 40 % of each reward")
    family = BOUNDED if rewards is None else reward_family(rewards)
    check_rewards(mechanism, family)
    most = _checked_window(window, family)
    return SessionTerms(mechanism, registration, rounds, checked_seed(seed), portion, family, most)


def _checked_window(window: object, family: RewardFamily) -> int | None:
    if window is None:
        return None
    rounds = whole(window)
    if rounds is None or not 1 <= rounds <= HORIZON_LIMIT:
        raise SessionError(
            f"expected a window of a whole number of rounds from 1, got {brief(window)}; or leave it out"
        )
    if math.isinf(family.low):
        raise SessionError(
            f"a window expects rewards that have a least one to count for a missing one, got {family.name} rewards in "
            f"{family.support}; leave it out, and enter a default yourself"
        )
    return rounds


def check_rewards(mechanism: Mechanism, family: RewardFamily) -> None:
    """Refuse rewards that the mechanism cannot count: coins stand for rewards in [0, 1] alone.

    A test of a slot needs scores whose likelihood ratios rise with the mean: counts of coins have them, and so have
    sums of Gaussian rewards of one standard deviation.
    """
    if family.low >= 0 and family.high <= 1:
        return
    normal = family.quantile is gaussian.quantile
    coins, slots = any(rule.binarise for rule in mechanism.rules), mechanism.arm.draws > 0
    if coins or (slots and not normal):
        expected = "rewards in [0, 1]" if coins else "gaussian rewards or rewards in [0, 1]"
        advice = (
            "give it coins=False (and contest='ucb' where there is a contest)"
            if slots and normal
            else "use another mechanism or family"
        )
        raise MechanismError(
            f"mechanism {mechanism.name!r} expects {expected}, got {family.name} rewards in {family.support}; {advice}"
        )


def open_registration(registered: Mapping[str, int]) -> Registration:
    """The public view in its usual order, keys as positions."""
    if not isinstance(registered, Mapping) or not registered:
        raise SessionError(
            f"expected registered as agent to number of arms, got {brief(registered)}; give e.g. {{'ana': 2}}"
        )
    counts = tuple(whole(arms) or 0 for arms in registered.values())
    for (name, arms), count in zip(registered.items(), counts, strict=True):
        if not isinstance(name, str) or not name.strip() or count < 1:
            raise SessionError(
                f"expected an agent's name and a whole number of arms from 1, got {name!r}: {brief(arms)}; "
                "leave out an agent that registered nothing"
            )
        if not is_one_line(name):
            raise SessionError(
                f"expected an agent's name without line breaks and control characters, got {name!r}; leave them out"
            )
    if sum(counts) > MOST_ARMS:
        raise SessionError(f"expected at most {MOST_ARMS} arms in a session, got {sum(counts)}; leave some out")
    arm_keys = tuple(tuple(range(count)) for count in counts)
    return Registration(tuple(registered), counts, tuple(range(len(counts))), arm_keys)


def checked_seed(seed: object) -> int:
    """A seed, or a clear error."""
    number = whole(seed)
    if number is None or not 0 <= number < SEED_LIMIT:
        raise SessionError(f"expected a seed that is a whole number from 0 to 2^63 - 1, got {brief(seed)}; use e.g. 0")
    return number
