"""Types from which rules and mechanisms are built, for `cp.Mechanism(agent=.., arm=.., restart=.., score=..)`.

>>> import cloneproof as cp
>>> ours = cp.Mechanism(agent=cp.rule("etc", rounds=50), arm=cp.rule("etc", rounds=20), restart="award",
...                     score=cp.parts.HoldOut(rounds=10, max_arms=2))
>>> str(ours)
'etc(50) x etc(20), restart at the award, score on 10 fresh rewards'
"""

from cloneproof.mechanisms import (
    Admission,
    Capped,
    Claim,
    Doubling,
    HoldOut,
    HoldOutEpochs,
    PriorityInputs,
    Restart,
    Rule,
    Sample,
    Score,
    Slots,
)

__all__ = [
    "Admission", "Capped", "Claim", "Doubling", "HoldOut", "HoldOutEpochs", "PriorityInputs", "Restart", "Rule",
    "Sample", "Score", "Slots",
]  # fmt: skip
