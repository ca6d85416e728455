"""Any mechanism made of rules, any reward family, round by round in compiled code."""

from cloneproof.engines.monte_carlo.stepping.engine import step_outcomes, stepping_applies

__all__ = ["step_outcomes", "stepping_applies"]
