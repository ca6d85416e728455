"""A season of bars on slots by the API, to its random end: terms with lists, restarts and a replay."""

import pytest

from cloneproof.serve.offline import replay_all
from support.service import Desk, open_market, sqlite

BARS = {"bars": [0.5, 0.2], "stake": [2, 1.5], "draws": 3}


def test_a_season_of_bars_is_played_to_its_end_and_replayed(tmp_path):
    place = tmp_path / "market.db"
    with Desk(sqlite(place, interval=20)) as desk:
        open_market(
            desk, {"ana": 2, "bo": 1}, mechanism="reservoir-bars", parameters=BARS, ends="at-random", horizon=80
        )
        assert desk.get("").json()["terms"]["parameters"] == BARS
    shown, number, over = set(), 0, False
    while not over:
        with Desk(sqlite(place, interval=20)) as desk:  # the service starts anew for every few views
            for one in desk.decide_batch(f"view {number}.{k}" for k in range(9)):
                over = over or one.get("error") == "horizon_reached"
                if "decision" in one:
                    shown.add((one["agent"], one["arm"]))
                    click = float(one["decision"] % 3 == 0)
                    assert desk.reward(f"click {one['decision']}", one["decision"], click) == "recorded"
        number += 1
    with Desk(sqlite(place)) as desk:
        assert desk.post("settle").status_code == 200
    (found,) = replay_all(str(place))
    assert (found.fits, found.exit_code) == (True, 0)
    assert len(shown) >= 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"parameters": {"bars": [0.2, 0.5]}}, "do not rise"),
        ({"parameters": {"bars": []}}, "at least one number"),
        ({"parameters": {"bars": ["high"]}}, "float"),
        ({"ends": "at-horizon"}, "ends at random"),
    ],
)
def test_terms_that_make_no_sense_are_refused_in_one_sentence(changes, said):
    with Desk() as desk:
        terms = {
            "market": "feed",
            "mechanism": "reservoir-bars",
            "parameters": BARS,
            "ends": "at-random",
            "horizon": 80,
        }
        refused = desk.post("/v1/markets", terms | changes)
        assert refused.status_code in (400, 422)
        assert said in refused.json()["message"]
