"""Who copies: arms of a log that look like one item, with false discoveries controlled.

records    what goes in, `ArmRecord`, and what comes out, `CopyFindings`
search     `find_copies`
"""

from cloneproof.analysis.copying.records import ArmRecord, CopyFindings, CopyGroup
from cloneproof.analysis.copying.search import find_copies

__all__ = ["ArmRecord", "CopyFindings", "CopyGroup", "find_copies"]
