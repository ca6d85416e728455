"""Rows of dictionary codes and whole rewards into the sums of arms, in compiled code that lets other threads work."""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201 (compiled functions are typed by their arguments)
from __future__ import annotations

import numba as nb
import numpy as np

DONE, ODD, FULL = (np.int64(number) for number in range(3))  # how a call ended
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@nb.njit(cache=True, nogil=True)
def add_rows(agents, arms, rewards, agent_numbers, arm_numbers, recent, low, high, slots, bits, keys, sums, state):
    """Add the rows from `state[0]` on; there are `state[1]` pairs. A code without a name or a reward outside is odd.

    A table of open addressing, `slots`, has the numbers of the pairs, whose keys and sums (rows, rewards, squares) are
    in `keys` and `sums`. By code of an arm, `recent` has the code of its last agent and the number of their pair: most
    arms have one agent, and their rows need no search.
    """
    shift, last = np.uint64(64 - bits), np.uint64(len(slots) - 1)
    pairs = state[1]
    for row in range(np.uint64(state[0]), np.uint64(len(arms))):
        agent, arm, reward = np.uint64(np.uint32(agents[row])), np.uint64(np.uint32(arms[row])), rewards[row]
        if agent >= len(agent_numbers) or arm >= len(arm_numbers) or reward < low or reward > high:
            return ODD
        if recent[arm, 0] == agents[row]:
            number = np.uint64(recent[arm, 1])
        else:
            key = (np.uint64(agent_numbers[agent]) << np.uint64(32)) | np.uint64(arm_numbers[arm])
            slot = (key * GOLDEN) >> shift
            while slots[slot] >= 0 and keys[slots[slot]] != key:
                slot = (slot + np.uint64(1)) & last
            if slots[slot] < 0:
                if pairs == len(keys):
                    state[0], state[1] = row, pairs
                    return FULL
                slots[slot] = pairs
                keys[pairs] = key
                pairs += 1
            recent[arm, 0], recent[arm, 1] = agents[row], slots[slot]
            number = np.uint64(slots[slot])
        sums[number, 0] += 1
        sums[number, 1] += reward
        sums[number, 2] += reward * reward
    state[0], state[1] = len(arms), pairs
    return DONE


@nb.njit(cache=True, nogil=True)
def fill_pairs(slots, bits, keys):
    """Find a slot for each key again, in a larger table."""
    last = np.uint64(len(slots) - 1)
    for number in range(len(keys)):
        slot = (keys[number] * GOLDEN) >> np.uint64(64 - bits)
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & last
        slots[slot] = number
