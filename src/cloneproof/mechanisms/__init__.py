"""HOW: rules, mechanisms made of them, the catalogue, and the online session."""

from cloneproof.mechanisms.catalogue import CATALOGUE, award_horizon, mechanism
from cloneproof.mechanisms.mechanism import Claim, Doubling, HoldOut, HoldOutEpochs, Mechanism, Sample
from cloneproof.mechanisms.online.session import Decision, Session, session
from cloneproof.mechanisms.parameters.theorem_conditions import outside_conditions
from cloneproof.mechanisms.rule import Rule, rule, rule_names

__all__ = [
    "CATALOGUE", "Claim", "Decision", "Doubling", "HoldOut", "HoldOutEpochs", "Mechanism", "Rule", "Sample",
    "Session", "award_horizon", "mechanism", "outside_conditions", "rule", "rule_names", "session",
]  # fmt: skip
