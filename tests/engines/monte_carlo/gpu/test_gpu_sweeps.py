"""Sweeps with device=: one store, whoever draws the runs."""

import pytest

import cloneproof as cp
from cloneproof._sources import code_version
from cloneproof.errors import EngineError
from cloneproof.sweeps.store import open_store
from cloneproof.sweeps.sweep import Interrupted, Sizes
from support.host_kernels import needs_compiler

MARKET = cp.Market(
    [cp.Agent("ana", 2, cp.Discrete([0.2, 0.8], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.6))], horizon=50, share=0.4
)
GRID = {
    "market": MARKET, "mechanism": ["ucb1", "thompson", "h-ucb"], "engine": "monte-carlo", "runs": 3000,
    "copies": [{}, {"ana": (2, 1)}],
}  # fmt: skip


def contents(folder):
    with open_store(folder, code_version()) as store:
        return {chunk: store.read(chunk) for chunk in store.chunks()}


@needs_compiler
def test_a_store_begun_on_a_card_is_completed_on_a_cpu(as_card, tmp_path):
    whole = cp.sweep(GRID, tmp_path / "cpu", workers=1, device="cpu")
    assert as_card.launches == 0

    def stop(state):
        if state.chunks >= 3:
            raise KeyboardInterrupt

    small = Sizes(chunk_bytes=1 << 14)
    with pytest.raises(Interrupted):
        cp.sweep(GRID, tmp_path / "both", device="gpu", progress=stop, sizes=small)
    launches = as_card.launches
    assert launches > 0
    mixed = cp.sweep(GRID, tmp_path / "both", workers=1, device="cpu")
    assert as_card.launches == launches
    assert mixed.summary.reused >= 3
    assert mixed.summary.computed > 0
    assert dict(mixed) == dict(whole)


@needs_compiler
def test_chunks_have_the_same_bytes_wherever_they_were_drawn(as_card, tmp_path):
    for device in ("cpu", "gpu"):
        cp.sweep(GRID, tmp_path / device, workers=1, device=device, sizes=Sizes(seconds=60.0))
    assert contents(tmp_path / "cpu") == contents(tmp_path / "gpu") != {}


def test_a_sweep_refuses_a_device_before_it_makes_a_store(tmp_path):
    with pytest.raises(EngineError, match="unknown device 'gppu'"):
        cp.sweep(GRID, tmp_path / "store", device="gppu")
    assert not (tmp_path / "store").exists()
