"""Other people's bandits: audit any object that selects an arm and hears its reward.

Reading order: `contract` (what a policy must do), `play` (one run), `box_outcomes` (chunks of runs), `call_limit`,
`worker` and `workers` (calls that hang, runs over processes), `failure` (the error when a policy breaks its contract),
`paired_gain` (honest against copied). `river` and `mabwiser` adapt the policies of those packages.
"""

from cloneproof.engines.black_box.box_job import BlackBoxJob
from cloneproof.engines.black_box.box_outcomes import black_box_outcomes
from cloneproof.engines.black_box.contract import BlackBox, Policy, View
from cloneproof.engines.black_box.failure import BlackBoxError
from cloneproof.engines.black_box.paired_gain import PairedGain, black_box_gain
from cloneproof.engines.black_box.play import black_box_run
from cloneproof.engines.black_box.workers import Workers

__all__ = [
    "BlackBox", "BlackBoxError", "BlackBoxJob", "PairedGain", "Policy", "View", "Workers", "black_box_gain",
    "black_box_outcomes", "black_box_run",
]  # fmt: skip
