"""Reservoirs, compiled: tests of slots and the rounds of champions, one by one or as blocks."""

from cloneproof.engines.monte_carlo.slots.engine import (
    slot_block_outcomes,
    slot_blocks_apply,
    slot_step_outcomes,
    slots_apply,
)

__all__ = ["slot_block_outcomes", "slot_blocks_apply", "slot_step_outcomes", "slots_apply"]
