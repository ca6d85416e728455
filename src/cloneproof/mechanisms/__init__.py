"""Mechanisms: rules, the mechanisms made of them, the catalogue, and the online session."""

from cloneproof.mechanisms.catalogue import CATALOGUE, known_mechanism, mechanism
from cloneproof.mechanisms.mechanism import Claim, Mechanism
from cloneproof.mechanisms.online.session import Session, session
from cloneproof.mechanisms.online.session_file import Decision
from cloneproof.mechanisms.parameters.theorems import outside_conditions
from cloneproof.mechanisms.part import Restart, Score
from cloneproof.mechanisms.restarts.doubling import Doubling
from cloneproof.mechanisms.rule import PriorityInputs, Rule, Slots, rule, rule_names

__all__ = [
    "CATALOGUE", "Claim", "Decision", "Doubling", "Mechanism",
    "PriorityInputs", "Restart", "Rule", "Score", "Session", "Slots", "known_mechanism",
    "mechanism", "outside_conditions", "rule", "rule_names", "session",
]  # fmt: skip
