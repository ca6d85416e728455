"""Bounds that rules declare for compiled loops."""

from dataclasses import replace

import cloneproof as cp
from support.rule_checks import bounds_hold


def test_bounds_that_the_priority_passes_are_caught():
    """All built-in rules with a bound keep it; one that forgets the clock, and a test that says too much, do not."""
    rules = [cp.rule(name) for name in ("ucb", "kl-ucb", "steady-ucb", "steady-kl-ucb")]
    assert all(rule.bound is not None and list(bounds_hold(cp.bandit(arm=rule))) == [] for rule in rules)
    ucb = rules[0]
    for lie in (
        replace(ucb, bound=lambda inputs, constant: inputs.mean + 1e-3),
        replace(ucb, bound=lambda inputs, constant: ucb.priority(inputs, constant) * (1 - 1e-9)),
        replace(ucb, exceeds=lambda inputs, level, constant: inputs.mean + 3 > level),
    ):
        assert next(bounds_hold(cp.bandit(arm=lie)))
