"""Types that the functions of `cloneproof` return.

Each has `to_dict()`, which is also the command line's `--json`, or is a plain named tuple; tables have `to_frame()`,
`to_markdown()` and `to_latex()`, and readers of Arrow take them as they are: `polars.DataFrame(result)`.

>>> import cloneproof as cp
>>> cp.results.Estimate(2.0, 0.5, "exact", "by hand").low
1.5
"""

from cloneproof.advice.recommendation import Recommendation
from cloneproof.audits.equilibrium import Equilibrium
from cloneproof.audits.gain import Finding, Gain
from cloneproof.audits.result import Audit, InformedGain, KnowledgeGain
from cloneproof.audits.search_result import Witness
from cloneproof.evaluation.conformance import Conformance
from cloneproof.evaluation.reference import Record
from cloneproof.logs.same import SameItems
from cloneproof.mechanisms.session_file import Decision
from cloneproof.runs.estimate import Estimate, Evaluation
from cloneproof.sweeps.table import SweepTable

__all__ = [
    "Audit",
    "Conformance",
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
