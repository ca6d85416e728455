"""Exact payoffs of everything that explores and then commits, by its structure instead of by simulation.

Reading order: `structure` (what is covered), `phases.commitment` and `laws.tie_breaking` (who is committed to),
`phases.round_schedule` (how many rounds each arm expects), `phases.realisations`, `laws.reward_laws` and
`phases.trial_score` (an agent's score), `phases.award` (who wins it), `expectation` (all of it together) and `engine`
(estimates with their errors).
"""

from cloneproof.engines.closed_form.engine import closed_form

__all__ = ["closed_form"]
