"""How the error level of a race is shared: all of its statements hold together at 1 - ALPHA.

- LOOKS * ALPHA: the intervals of the search, over all candidates together.
- HALF * ALPHA: confirmations. A candidate that seems to pay is sampled afresh, from a seed of its own. What made it
  look good is no part of these pairs, so no union over all candidates is needed: the j-th candidate to be confirmed has
  the error level HALF * ALPHA * 2 / 3^j. Each level is shared by two estimates, the gain and the honest payoff that a
  tolerance is relative to.
- NONE * ALPHA: that *none* of the candidates gains more than x. That needs no union (an intersection-union test, Berger
  1982): let j be the candidate of the largest relative gain. Whichever it is, it was fixed before anything was drawn,
  and the largest of all upper ends is at least its own. So the largest of upper ends at NONE * ALPHA each bounds the
  largest gain at NONE * ALPHA, if every candidate was looked at; where some were not, which ones may have to do with
  what was drawn, and the intervals of the search count, whose level is shared among all of them.

*A list that grows.* Candidates come in generations: 0 is planned before anything is drawn, and later ones (`beyond`)
are chosen by what earlier ones drew. Each generation has a seed of its own, so given all earlier generations its
candidates are fixed and its pairs are independent of what chose them: both arguments above hold for it, conditionally
and hence altogether. PLANNED of LOOKS and of NONE is for generation 0, and of the rest 2^-g for generation g; so a
bound of the largest gain of all candidates, whichever were added, holds at the sum over generations, NONE * ALPHA at
most.

A look that was taken in short passes (`strata_of`) has SHORT of its candidate's level, and the whole passes that may
follow have the rest: the candidate is bounded by either.

Every interval is a confidence sequence, so this holds wherever pairs were spent and whenever the race stopped.
"""

from __future__ import annotations

ALPHA = 0.01
HALF, NONE, LOOKS = 0.5, 0.4, 0.1  # of it: for confirmations, for what none of the candidates gains, for looks
PLANNED = 0.9  # of the latter two: for the candidates that were planned
SHORT = 0.05  # of a candidate's level: for a look in short passes
OF_GAIN = 0.75  # of the level of an upper end of a relative gain: for the gain; the rest for the honest payoff


def confirmation_level(alpha: float, rank: int) -> float:
    """Of the candidate that is confirmed first, second, ..: two thirds for the first, then slowly falling parts.

    Were they geometric, 1 minus the level of the thirtieth would round to 1.

    >>> round(sum(confirmation_level(0.01, rank) for rank in range(1, 10**5)), 7)
    0.005
    """
    part = 2 / 3 if rank == 1 else 1 / (3 * (rank - 1) * rank)  # 1/2 + 1/6 + 1/12 + .. = 1
    return HALF * alpha * part


def generation_share(generation: int) -> float:
    """The part of a level that a generation of candidates has.

    >>> round(sum(generation_share(g) for g in range(60)), 12)
    1.0
    """
    return PLANNED if generation == 0 else (1 - PLANNED) * 2.0**-generation
