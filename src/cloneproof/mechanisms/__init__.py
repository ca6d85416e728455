"""Mechanisms: rules, the mechanisms made of them, the catalogue, and the online session."""

from cloneproof.mechanisms.bandits.bandit import Bandit, bandit
from cloneproof.mechanisms.bandits.rule import PriorityInputs, Rule
from cloneproof.mechanisms.bandits.rules import rule, rule_names
from cloneproof.mechanisms.catalogue import CATALOGUE, known_mechanism, mechanism
from cloneproof.mechanisms.committing.parameters import outside_conditions
from cloneproof.mechanisms.mechanism import Claim, Mechanism
from cloneproof.mechanisms.session import Session, session
from cloneproof.mechanisms.session_file import Decision

__all__ = [
    "CATALOGUE", "Bandit", "Claim", "Decision", "Mechanism", "PriorityInputs", "Rule", "Session",
    "bandit", "known_mechanism", "mechanism", "outside_conditions", "rule", "rule_names", "session",
]  # fmt: skip
