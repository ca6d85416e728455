"""Replication-proof bandits: whether a platform can be gamed by registering the same thing twice.

A market: `Agent`, `Market`, the priors `Point`, `Discrete`, `Uniform`, `Beta`, `Empirical` and `LogOdds`, rates by
segment as `SegmentVectors`; `load_market` and `save_market`.
A mechanism: `mechanism` by name, or `Mechanism` composed of two of `rule`; `BlackBox` for somebody else's bandit.
Questions: `evaluate`, `gain`, `audit`, `equilibrium`, `simulate`, `sweep`; `check_mechanism`; `write_certificate` and
`verify`; `Search` says how far and how long. What to run: `recommend`. A platform's own log: `read_log`; `same_items`
of any table.
Live: `session` and `Session`.
Modules: `adapters` (other packages' bandits), `boards` (leaderboards), `bounds` (formulas), `errors`, `paper` (what
only its statements need), `parts` (of mechanisms), `results` (types of answers); `cloneproof.testing` (for tests).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cloneproof import bounds, errors, parts
from cloneproof._version import __version__ as __version__
from cloneproof.analysis.audit.audit import audit
from cloneproof.analysis.evaluate import evaluate
from cloneproof.analysis.gain import gain
from cloneproof.analysis.search import Search
from cloneproof.engines.black_box import BlackBox
from cloneproof.engines.reference import simulate
from cloneproof.market import (
    Agent,
    Beta,
    Discrete,
    Empirical,
    LogOdds,
    Market,
    Point,
    SegmentVectors,
    Uniform,
    load_market,
    save_market,
)
from cloneproof.mechanisms import Mechanism, Session, mechanism, rule, session

if TYPE_CHECKING:  # these load when they are first asked for
    from cloneproof import adapters, boards, paper, results
    from cloneproof.advice.comparison import compare
    from cloneproof.advice.recommend import recommend
    from cloneproof.analysis.certificate.writer import write_certificate
    from cloneproof.analysis.equilibrium import equilibrium
    from cloneproof.analysis.properties.conformance import check_mechanism
    from cloneproof.analysis.verify import verify
    from cloneproof.logs.reading import read_log
    from cloneproof.logs.same import same_items
    from cloneproof.sweeps.sweep import sweep

__all__ = [
    "Agent", "Beta", "BlackBox", "Discrete", "Empirical", "LogOdds", "Market", "Mechanism", "Point", "Search",
    "SegmentVectors", "Session", "Uniform",
    "adapters", "audit", "boards", "bounds", "check_mechanism", "compare", "equilibrium", "errors", "evaluate",
    "gain", "load_market", "mechanism", "paper", "parts", "read_log", "recommend", "results", "rule", "same_items",
    "save_market", "session", "simulate", "sweep", "verify", "write_certificate",
]  # fmt: skip

_LATE = {  # name: the module that has it, or that it is
    "adapters": "cloneproof.adapters",
    "boards": "cloneproof.boards",
    "check_mechanism": "cloneproof.analysis.properties.conformance",
    "compare": "cloneproof.advice.comparison",
    "equilibrium": "cloneproof.analysis.equilibrium",
    "paper": "cloneproof.paper",
    "read_log": "cloneproof.logs.reading",
    "recommend": "cloneproof.advice.recommend",
    "results": "cloneproof.results",
    "same_items": "cloneproof.logs.same",
    "sweep": "cloneproof.sweeps.sweep",
    "verify": "cloneproof.analysis.verify",
    "write_certificate": "cloneproof.analysis.certificate.writer",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name not in _LATE:
        raise AttributeError(f"module 'cloneproof' has no attribute {name!r}")
    module = import_module(_LATE[name])
    value = globals()[name] = module if module.__name__ == f"cloneproof.{name}" else getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__") and name.endswith("__"))])
