"""Who copies: arms of a log that look like one item, with false discoveries controlled.

records      what goes in, `ArmRecord`, and what comes out, `CopyFindings`
search       `find_copies`: the questions, their e-values, the findings
evidence     what each arm's rewards say about its mean
prior_fits   priors fitted without the agents that they judge
partitions   all groupings of an agent's arms; merging: greedily, for many arms
one_agent    an agent's arms judged together; two_agents: what two agents share
likeness     texts and vectors that are alike
weights      how the level is divided; discoveries: weighted e-BH
calibration  p-values where arms are alike, and e-values made of them
wording      the findings in words
"""

from cloneproof.analysis.copying.records import ArmRecord, CopyFindings, CopyGroup
from cloneproof.analysis.copying.search import find_copies

__all__ = ["ArmRecord", "CopyFindings", "CopyGroup", "find_copies"]
