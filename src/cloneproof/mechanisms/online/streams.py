"""Which number of a random stream means what, from a session down to a level.

Changing one of them changes every run of every seed. Compiled kernels derive the same streams from the same numbers.
"""

from __future__ import annotations

STATE_STREAM, COINS_STREAM = range(2)
"""Of a session: what its mechanism draws, and the coins that binarise rewards."""

LEVELS_STREAM, SAMPLE_STREAM, NEUTRAL_STREAM = range(3)
"""Of the state of a mechanism: its levels (then by version and key), its sample of the arms, and waiting rounds."""

EXPLORE_STREAM, TIE_STREAM, COIN_STREAM, DRAW_STREAM = range(4)
"""Of a level: order of exploration, ties, a coin for the round, and a draw for each candidate."""

SLOT_STREAM = 5
"""Of a level of slots: the arm that each slot holds."""

ORDER_STREAM, FALLBACK_STREAM = range(2)
"""Of a timetable of slots: the order of the agents, and whose fresh draw is the fallback."""
