"""Markets with several places a page: what is refused, and files."""

from pathlib import Path

import pytest

import cloneproof as cp
from cloneproof.errors import MarketFileError

AGENTS = [cp.Agent("ana", 2, cp.Point(0.5))]


def test_positions_are_kept_by_files_and_by_other_horizons(tmp_path: Path) -> None:
    market = cp.Market(AGENTS, 10, positions=[1, 0.5, 0.5, 0])
    cp.save_market(market, tmp_path / "market.toml")
    assert cp.load_market(tmp_path / "market.toml") == market
    assert market.with_horizon(7).positions == market.at({"ana": (0.1, 0.2)}).positions == (1.0, 0.5, 0.5, 0.0)
    assert market.page_attention == 2.0
    (tmp_path / "rising.toml").write_text(
        'horizon = 9\n\npositions = [0.5, 1.0]\n[[agents]]\nname = "ana"\noriginals = 1\nprior = { point = 0.5 }',
        encoding="utf-8",
    )
    with pytest.raises(MarketFileError, match="line 3: expected positions"):
        cp.load_market(tmp_path / "rising.toml")


def test_segments_may_have_places_of_their_own() -> None:
    segments = {"phone": 0.7, "desk": 0.3}
    market = cp.Market(AGENTS, 10, segments=segments, positions={"phone": (1,), "desk": (1, 0.5)})
    assert [market.segment(name).places for name in segments] == [(1.0,), (1.0, 0.5)]
    assert cp.Market(AGENTS, 10, segments=segments, positions=(1, 0.5)).segment("phone").places == (1.0, 0.5)
