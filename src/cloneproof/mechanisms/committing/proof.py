"""What is proven of mechanisms that explore and then commit.

The theorem on commitment (docs/textbook/commitment.md), whose proof is ours alone, and arguments that need none. They
are about replications (every original at least once): they do not cover withholding, several accounts and priors that
differ between originals.

*Late rewards* (docs/textbook/delays.md). A mechanism that commits waits for late rewards in neutral rounds. Its other
rounds are as without delays, but fewer, and copies gain at most a stated bound, mostly 0.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from cloneproof.market.priors import smallest_gap
from cloneproof.mechanisms.committing.commitment import Binomial, Fixed, Rounds, unfinished_trial
from cloneproof.mechanisms.proof import DECIDES, EXPLORING, NO_THEOREM, ONE_MEAN, Case, Lists, Proof, never_erring

if TYPE_CHECKING:
    from cloneproof.mechanisms.committing.committing import Committing

ROUNDING = 1e-9  # A theorem's condition must hold with this to spare, for the floats it is checked in.
COMMITMENT = (
    "a theorem (docs/textbook/commitment.md; not a computation, and the proof is ours): the "
    "exploration of m rounds per arm meets (l - 1) exp(-m gap^2) <= m / (l T), so what copies add in exploration "
    "costs more than they can gain, for every number of copies"
)


def proof(mechanism: Committing, case: Case) -> Proof:
    """Return what is known of an agent's lists."""
    late = mechanism.rules[0].commits or mechanism.uniform
    if case.market.places:  # all of it is about one arm a round
        return Proof(late=(None, NO_THEOREM if late else DECIDES))
    apart, theorem = rounds_are_given(mechanism, case), commitment_pays(mechanism, case)
    words = COMMITMENT if theorem else ""
    same = True
    if case.of_one_mean and (case.agents == 1 or mechanism.agent is not None):
        words = ONE_MEAN
    elif case.exchangeable and apart and all(rounds <= case.agent.count * m for rounds, m in stages(mechanism, case)):
        words = EXPLORING
    else:
        same = False
    earning = _rounds_to_earn_in(mechanism, case)
    stages_of_rounds = [(float(h.mean), lambda n, h=h: float(h.minimum(n)), m) for h, m in earning]
    return Proof(
        words,
        frozenset((Lists.COPIES,)) if words else frozenset(),
        same=same,
        apart=apart,
        late=(_late(mechanism, case) if theorem else (None, NO_THEOREM)) if late else (None, DECIDES),
        earns=never_erring(case, stages_of_rounds) if earning else None,
    )


def rounds_are_given(mechanism: Committing, case: Case) -> bool:
    """Return whether an agent's number of rounds depends neither on rewards nor on what is registered."""
    rule = mechanism.agent
    if case.agents == 1 or rule is None:
        return case.agents == 1
    return rule.uniform or (rule.commits and case.market.horizon < case.agents * rule.tries)


def stages(mechanism: Committing, case: Case) -> list[tuple[int, int]]:
    """(most rounds, exploration rounds per arm) of each stage; the agent's arm statistics are cleared at its start."""
    horizon, rule, m = case.market.horizon, mechanism.agent, mechanism.arm_rounds
    if rule is None:
        return [(own.rounds, own.mechanism.arm_rounds) for own in mechanism.epochs(horizon)]
    award = horizon - case.agents * rule.tries
    if rule.commits and award < 0:
        return [(min(horizon, rule.tries), m)]
    if rule.commits and mechanism.clears:
        return [(rule.tries, m), (award, m)] if award > 0 else [(rule.tries, m)]
    return [(horizon, m)]


def _rounds_to_earn_in(mechanism: Committing, case: Case) -> list[tuple[Rounds, int]]:
    """Return the same with the law of the rounds, if they do not depend on lists; with an award, as if it were won."""
    horizon, rule, m = case.market.horizon, mechanism.agent, mechanism.arm_rounds
    if rule is not None and rule.uniform:
        return [(Binomial(horizon, Fraction(1, case.agents)), m)]
    if case.agents > 1 and (rule is None or not rule.commits):
        return []
    if rule is None or horizon >= case.agents * rule.tries:
        trial_and_award = stages(mechanism, case)
        if rule is not None and not mechanism.clears:
            trial_and_award = [(horizon - (case.agents - 1) * rule.tries, m)]
        return [(Fixed.of(rounds), explored) for rounds, explored in trial_and_award]
    place = [agent.name for agent in case.market.agents].index(case.name)
    return [(unfinished_trial(case.agents, rule.order, rule.tries, horizon)[place], m)]


def commitment_pays(mechanism: Committing, case: Case) -> bool:
    """Step 1 of the theorem on commitment: (l - 1) exp(-m gap^2) <= m / (l H) in each stage of at most H rounds."""
    agent = case.agent
    if not mechanism.arm.commits or not rounds_are_given(mechanism, case):
        return False
    if not case.exchangeable or agent.support is None:
        return False
    return all(
        case.mistakes(m) <= math.log(m) - math.log(agent.count * rounds) - ROUNDING
        for rounds, m in stages(mechanism, case)
    )


def _late(mechanism: Committing, case: Case) -> tuple[float, str]:
    """Return the most that copies gain through delays where the theorem holds, and why."""
    trial = mechanism.agent_rounds
    if mechanism.agent is not None and mechanism.clears and case.market.horizon >= case.agents * trial:
        return _award_gain(mechanism, case), "the trial waits at turns that do not depend on what is registered"
    gain = sum(rounds * math.exp(case.mistakes(m)) for rounds, m in stages(mechanism, case))
    return gain, "a commitment waits on uniform draws, which may make the exploration of copies free"


def _award_gain(mechanism: Committing, case: Case) -> float:
    """Apply the theorem of docs/textbook/delays.md, part (a), to a trial and an award."""
    agent, horizon, m = case.agent, case.market.horizon, mechanism.arm_rounds
    assert agent.support is not None
    mistakes = horizon * math.exp(case.mistakes(m))
    if mistakes == 0:
        return 0.0
    gap, count = smallest_gap(agent.support), agent.count
    if case.agents == 1 or mistakes * count > horizon:
        return 2 * mistakes
    return max(0.0, (1 + gap) * mistakes - m * gap / count, 2 * mistakes - m / count)
