"""What compiled loops and a theorem rely on without looking: bounds of priorities, and steady indices."""

from collections.abc import Iterator
from itertools import accumulate, product

from cloneproof.laws.logarithm import ln
from cloneproof.mechanisms.bandits.rule import PriorityInputs, Rule
from cloneproof.mechanisms.mechanism import Mechanism

STEADY_AT = ((901, 0.1), (1000, 0.5), (4000, 0.9))  # clocks and random numbers that a steady index does not look at


def rules_of(mechanism: Mechanism) -> Iterator[Rule]:
    """Rules by priority in a mechanism: those of its levels, or that of a contest."""
    levels = mechanism.levels(1000)
    contest = getattr(mechanism, "agent", None)
    yield from levels[0].rules if levels else [contest] if isinstance(contest, Rule) else []


def bounds_hold(mechanism: Mechanism) -> Iterator[str]:
    """A rule's `bound` is not passed by its priority at any earlier clock, and `exceeds` is true only where it is.

    Compiled loops rely on both without looking again. At clocks up to 4,000, pulls and means of a grid.
    """
    for rule in rules_of(mechanism):
        limit, passes = rule.bound, rule.exceeds
        if limit is None:
            continue
        for pulls, mean in product((1, 2, 5, 30, 900), (0.0, 0.01, 0.3, 0.5, 0.97, 1.0)):
            clocks = [clock for clock in (2, 3, 10, 50, 1000, 4000) if clock >= pulls]
            states = [PriorityInputs(clock, ln(clock), pulls, mean, 0.5, 0.5, 4) for clock in clocks]
            values = [rule.priority(state, *rule.parameters) for state in states]
            for state, highest in zip(states, accumulate(values, max), strict=True):
                if highest > limit(state, *rule.parameters):
                    yield f"rule {rule.name!r} has priority {highest:.6g} by {state}, above its `bound`"
            for (state, value), level in product(zip(states, values, strict=True), values):
                if passes is not None and passes(state, level, *rule.parameters) and value <= level:
                    yield f"rule {rule.name!r} has priority {value:.6g} by {state}, `exceeds` says above {level:.6g}"


def steady_as_declared(mechanism: Mechanism) -> Iterator[str]:
    """A rule that says `steady` looks at a candidate's own rewards alone, and its priority never falls with them.

    The ceiling of knowledge rests on both (docs/textbook/knowledge.md).
    """
    for rule in (rule for rule in rules_of(mechanism) if rule.steady):
        for pulls in (1, 2, 5, 30, 900):
            priorities = []
            for mean in (0.0, 0.01, 0.3, 0.5, 0.97, 1.0):
                states = [PriorityInputs(clock, ln(clock), pulls, mean, x, 1 - x, 4) for clock, x in STEADY_AT]
                values = {rule.priority(state, *rule.parameters) for state in states}
                if len(values) > 1:
                    yield f"rule {rule.name!r} with {pulls} pulls of mean {mean:g} has the priorities {sorted(values)}"
                priorities.append(min(values))
            if priorities != sorted(priorities):
                yield f"rule {rule.name!r} with {pulls} pulls falls as the mean rises: {priorities}"
