"""What a season's rewards say: priors fitted to them, what copying would have earned, and which arms may be copies.

evidence   what the rewards of one arm say about its mean, on a grid
fit        empirical Bayes: the priors by EM
pairs      which arms of one agent are copies: groups, and pairs as marginals
support    whether there are rewards enough for a prior at all
season_audit  all of this together, and the audit of the fitted market
"""

from cloneproof.analysis.history.evidence import ArmRewards
from cloneproof.analysis.history.season_audit import PastAudit, audit_past

__all__ = ["ArmRewards", "PastAudit", "audit_past"]
