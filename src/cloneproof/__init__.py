"""Replication-proof bandits: whether a platform can be gamed by registering the same thing twice.

A market: `Agent`, `Market`, the priors `Point`, `Discrete`, `Uniform`, `Beta` and `Empirical`; `load_market` and
`save_market`.
A mechanism: `mechanism` by name, or `Mechanism` composed of two of `rule`; `BlackBox` for somebody else's bandit.
Questions: `evaluate`, `gain`, `audit`, `equilibrium`, `simulate`, `sweep`; `check_mechanism`; `write_certificate` and
`verify`. What to run: `recommend`. A platform's own log: `read_log`.
Live: `session` and `Session`.
Modules: `adapters` (other packages' bandits), `bounds` (formulas), `errors`, `paper` (what only its statements need),
`parts` (of mechanisms), `results` (types of answers).
"""

from typing import TYPE_CHECKING

from cloneproof import bounds, errors, parts
from cloneproof._version import __version__ as __version__
from cloneproof.analysis.audit.api import audit
from cloneproof.analysis.evaluate import evaluate
from cloneproof.analysis.gain import gain
from cloneproof.engines.black_box import BlackBox
from cloneproof.engines.reference import simulate
from cloneproof.market import Agent, Beta, Discrete, Empirical, Market, Point, Uniform, load_market, save_market
from cloneproof.mechanisms import Mechanism, Session, mechanism, rule, session
from cloneproof.report import notebook as _notebook  # noqa: F401 (how a notebook shows the results)

if TYPE_CHECKING:  # these load when they are first asked for
    from cloneproof import adapters, paper, results
    from cloneproof.advice.recommend import recommend
    from cloneproof.analysis.certificate import write_certificate
    from cloneproof.analysis.equilibrium.api import equilibrium
    from cloneproof.analysis.properties.conformance import check_mechanism
    from cloneproof.analysis.verify import verify
    from cloneproof.logs.reader.reading import read_log
    from cloneproof.sweeps.sweep import sweep
else:
    from cloneproof._late_names import __getattr__ as __getattr__

__all__ = [
    "Agent", "Beta", "BlackBox", "Discrete", "Empirical", "Market", "Mechanism", "Point", "Session", "Uniform",
    "adapters", "audit", "bounds", "check_mechanism", "equilibrium", "errors", "evaluate", "gain", "load_market",
    "mechanism", "paper", "parts", "read_log", "recommend", "results", "rule", "save_market", "session", "simulate",
    "sweep", "verify", "write_certificate",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__") and name.endswith("__"))])
