"""How many arms of an agent come into play, and which worlds stand for all that register more.

*Lemma.* Let an agent's registration come into play through a uniformly random set of s of its arms alone, whenever it
registers s or more, while agents are chosen without regard to how many arms they registered. Then the payoff of every
vector c of s arms or more is an average of payoffs of vectors n <= c of exactly s arms, 0 of an original included.

*Proof.* Given that the set has n_i arms of original i, the run has the law of the run in which the agent registers n:
the same arms, the same choice of agents. So the payoff of c is the average of the payoffs of n over the multivariate
hypergeometric law of n, which is that of s draws without replacement from c.

*Corollary.* If no n >= 0 of s arms and no replication of fewer than s gains more than x, no replication gains more
than x.

Two kinds of mechanisms have such a set, if every reward of an agent counts and nothing is cleared:

- those that keep a uniform sample of s arms of each agent from the start (RH-UCB): that sample;
- those whose arm level pulls every arm once, in a random order, before any a second time (UCB, KL-UCB): with T arms or
  more and T rounds only fresh arms are ever pulled, so what is pulled is the beginning of a random order. s = T.

*Limit of many copies.* With k copies of original i and one of each other, the chance that a set of s arms has another
one is at most (l - 1) s / (k + l - 1), for l originals. So as k grows the payoff tends to that of s copies of i and
nothing else, and since equal arms under a choice of agents that sees no arms are as good as one, to the payoff of
registering i alone; the difference is at most share T (l - 1) s / (k + l - 1).
"""

from __future__ import annotations

from itertools import islice

from cloneproof.analysis.audit.cases import AuditCase
from cloneproof.analysis.audit.copy_vectors import CopyVector, all_below, of_sum
from cloneproof.mechanisms.sample import Sample

MOST_WORLDS = 200


def arms_in_play(case: AuditCase) -> int | None:
    """The s of the lemma; None where the mechanism has no such set.

    >>> from cloneproof import Agent, Discrete, Market, mechanism
    >>> from cloneproof.analysis.audit.cases import audit_case
    >>> market = Market([Agent(name, 2, Discrete([0, 1], [0.5, 0.5])) for name in ("ana", "bo")], horizon=100)
    >>> [arms_in_play(audit_case(market, mechanism(name), "ana")) for name in ("rh-ucb", "h-ucb", "ucb1")]
    [4, 100, None]
    """
    running, arm = case.running, case.running.arm
    if case.box is not None or (running.agent is None and case.agents > 1):
        return None
    if running.restart is not None or running.score != "all" or arm.draws or arm.order == "index":
        return None
    if running.sample is None:
        one_after_the_other = arm.explore >= 1 and (arm.order == "round-robin" or arm.explore == 1)
        return case.horizon if one_after_the_other else None
    return running.sample.size(case.horizon) if isinstance(running.sample, Sample) else None


def limit_worlds(case: AuditCase) -> dict[int, CopyVector]:
    """For one original of each kind, the world that ever more copies of it tend to: that original alone."""
    if arms_in_play(case) is None or case.kinds.count == 1:
        return {}
    return {k: alone(case, k) for k in case.kinds.first_of_each()}


def alone(case: AuditCase, original: int) -> CopyVector:
    """One original once, and no other."""
    return tuple(int(k == original) for k in range(case.kinds.count))


def worlds_that_suffice(case: AuditCase) -> list[CopyVector] | None:
    """The worlds of the corollary, an original alone in place of s copies of it; None where they are too many.

    >>> from cloneproof import Agent, Discrete, Market, mechanism
    >>> from cloneproof.analysis.audit.cases import audit_case
    >>> market = Market([Agent(name, 2, Discrete([0, 1], [0.5, 0.5])) for name in ("ana", "bo")], horizon=100)
    >>> worlds_that_suffice(audit_case(market, mechanism("rh-ucb"), "ana"))
    [(2, 1), (2, 2), (3, 1), (1, 0)]
    """
    arms = arms_in_play(case)
    below = None if arms is None else all_below(case.kinds, arms, MOST_WORLDS)
    if arms is None or below is None:
        return None
    full = list(islice(of_sum(case.kinds, arms, least=0), MOST_WORLDS + 1))
    if len(below) + len(full) > MOST_WORLDS:
        return None
    single = [
        alone(case, next(k for k, n in enumerate(world) if n)) if world.count(0) == len(world) - 1 else world
        for world in full
    ]
    return list(dict.fromkeys([*below, *(world for world in single if world != case.kinds.honest)]))
