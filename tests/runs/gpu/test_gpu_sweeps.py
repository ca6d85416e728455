"""Sweeps with device=: one store, whoever draws the runs."""

import pytest

import cloneproof as cp
from cloneproof.errors import EngineError
from cloneproof.sweeps.sweep import Interrupted
from support.host_kernels import needs_compiler

MARKET = cp.Market(
    [cp.Agent("ana", 2, cp.Discrete([0.2, 0.8], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.6))], horizon=50, share=0.4
)
GRID = {
    "market": MARKET, "mechanism": ["ucb1", "thompson", "h-ucb"], "engine": "runs", "runs": 3000,
    "copies": [{}, {"ana": (2, 1)}],
}  # fmt: skip


@needs_compiler
def test_a_store_begun_on_a_card_is_completed_on_a_cpu(as_card, tmp_path):
    whole = cp.sweep(GRID, tmp_path / "cpu", workers=1, device="cpu")
    assert as_card.launches == 0

    def stop(state):
        if state.finished == 3:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        cp.sweep(GRID, tmp_path / "both", device="gpu", progress=stop)
    launches = as_card.launches
    assert launches > 0
    mixed = cp.sweep(GRID, tmp_path / "both", workers=1, device="cpu")
    assert as_card.launches == launches
    assert (mixed.summary.reused, mixed.summary.computed) == (3, 3)
    assert dict(mixed) | {"notes": []} == dict(whole) | {"notes": []}
    assert [bool(note) for note in mixed["notes"]] == [row["point"] <= 3 for row in mixed.rows]  # who drew them


def test_a_sweep_refuses_a_device_before_it_makes_a_store(tmp_path):
    with pytest.raises(EngineError, match="unknown device 'gppu'"):
        cp.sweep(GRID, tmp_path / "store", device="gppu")
    assert not (tmp_path / "store").exists()
