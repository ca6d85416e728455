"""Mechanisms: rules, the mechanisms made of them, the catalogue, and the online session."""

from cloneproof.mechanisms.catalogue import CATALOGUE, award_horizon, known_mechanism, mechanism
from cloneproof.mechanisms.mechanism import Claim, Mechanism
from cloneproof.mechanisms.online.session import Session, session
from cloneproof.mechanisms.online.session_file import Decision
from cloneproof.mechanisms.parameters.theorems import outside_conditions
from cloneproof.mechanisms.part import Restart, Score
from cloneproof.mechanisms.restarts.doubling import Doubling
from cloneproof.mechanisms.restarts.hold_out_epochs import HoldOutEpochs
from cloneproof.mechanisms.rule import PriorityInputs, Rule, Slots, rule, rule_names
from cloneproof.mechanisms.sample import Admission, Sample
from cloneproof.mechanisms.scores.capped import Capped
from cloneproof.mechanisms.scores.hold_out import HoldOut

__all__ = [
    "CATALOGUE", "Admission", "Capped", "Claim", "Decision", "Doubling", "HoldOut", "HoldOutEpochs", "Mechanism",
    "PriorityInputs", "Restart", "Rule", "Sample", "Score", "Session", "Slots", "award_horizon", "known_mechanism",
    "mechanism", "outside_conditions", "rule", "rule_names", "session",
]  # fmt: skip
