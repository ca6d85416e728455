"""Replication-proof bandits: whether a platform can be gamed by registering the same thing twice."""

from cloneproof import adapters, bounds, errors
from cloneproof._version import __version__ as __version__
from cloneproof.analysis.audit.api import audit
from cloneproof.analysis.audit.verdict import Audit, Witness
from cloneproof.analysis.certificate import write_certificate
from cloneproof.analysis.evaluate import evaluate, evaluate_horizons
from cloneproof.analysis.gain import Gain, gain
from cloneproof.analysis.properties.conformance import check_mechanism
from cloneproof.analysis.properties.permutation_invariance import check_permutation_invariance
from cloneproof.analysis.properties.rp_regret import rp_regret
from cloneproof.analysis.properties.trp import check_trp
from cloneproof.analysis.replay_record import write_replay
from cloneproof.analysis.verify import verify
from cloneproof.engines.black_box import BlackBox
from cloneproof.engines.estimate import Estimate, Evaluation
from cloneproof.engines.reference import simulate, simulate_runs, summarise
from cloneproof.market import (
    Agent,
    Beta,
    Discrete,
    Empirical,
    Instance,
    Market,
    Point,
    Uniform,
    load_market,
    save_market,
)  # fmt: skip
from cloneproof.mechanisms import Doubling, HoldOut, Mechanism, Rule, Sample, Session, mechanism, rule
from cloneproof.mechanisms.online.session import session
from cloneproof.sweeps.sweep import sweep
from cloneproof.sweeps.table import SweepTable

__all__ = [
    "Agent", "Audit", "Beta", "BlackBox", "Discrete", "Doubling", "Empirical", "Estimate", "Evaluation", "Gain",
    "HoldOut", "Instance", "Market", "Mechanism", "Point", "Rule", "Sample", "Session", "SweepTable", "Uniform",
    "Witness", "adapters", "audit", "bounds", "check_mechanism", "check_permutation_invariance", "check_trp", "errors",
    "evaluate", "evaluate_horizons", "gain", "load_market", "mechanism", "rp_regret", "rule", "save_market", "session",
    "simulate", "simulate_runs", "summarise", "sweep", "verify", "write_certificate", "write_replay",
]  # fmt: skip
