"""HOW: rules, mechanisms made of them, the catalogue, and the online session."""

from cloneproof.mechanisms.catalogue import CATALOGUE, award_horizon, mechanism
from cloneproof.mechanisms.mechanism import Admission, Claim, Mechanism, Sample
from cloneproof.mechanisms.online.decisions import Decision
from cloneproof.mechanisms.online.session import Session, session
from cloneproof.mechanisms.parameters.theorem_conditions import outside_conditions
from cloneproof.mechanisms.restart import Restart
from cloneproof.mechanisms.restarts.doubling import Doubling
from cloneproof.mechanisms.restarts.hold_out_epochs import HoldOutEpochs
from cloneproof.mechanisms.rule import Rule, rule, rule_names
from cloneproof.mechanisms.score import Score
from cloneproof.mechanisms.scores.capped import Capped
from cloneproof.mechanisms.scores.hold_out import HoldOut

__all__ = [
    "CATALOGUE", "Admission", "Capped", "Claim", "Decision", "Doubling", "HoldOut", "HoldOutEpochs", "Mechanism",
    "Restart", "Rule", "Sample", "Score", "Session", "award_horizon", "mechanism", "outside_conditions", "rule",
    "rule_names", "session",
]  # fmt: skip
