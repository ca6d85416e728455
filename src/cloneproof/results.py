"""Types that the functions of `cloneproof` return.

Each has `to_dict()`, which is also the command line's `--json`, or is a plain named tuple; tables have `to_frame()`,
`to_markdown()` and `to_latex()`, and readers of Arrow take them as they are: `polars.DataFrame(result)`.

>>> import cloneproof as cp
>>> cp.results.Estimate(2.0, 0.5, "exact", "by hand").low
1.5
"""

from cloneproof.advice.recommendation import Recommendation
from cloneproof.analysis.audit.result import Audit, CopyLimit, InformedGain, KnowledgeGain
from cloneproof.analysis.audit.search_result import Witness
from cloneproof.analysis.conformance import Conformance
from cloneproof.analysis.equilibrium import Equilibrium
from cloneproof.analysis.gain import Finding, Gain
from cloneproof.engines.estimate import Estimate, Evaluation
from cloneproof.engines.reference import Record
from cloneproof.logs.same import SameItems
from cloneproof.mechanisms.online.session_file import Decision
from cloneproof.sweeps.table import SweepTable

__all__ = [
    "Audit",
    "Conformance",
    "CopyLimit",
    "Decision",
    "Equilibrium",
    "Estimate",
    "Evaluation",
    "Finding",
    "Gain",
    "InformedGain",
    "KnowledgeGain",
    "Recommendation",
    "Record",
    "SameItems",
    "SweepTable",
    "Witness",
]  # fmt: skip
