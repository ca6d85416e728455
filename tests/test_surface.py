"""Something to try, `seconds=` wherever `search=` is, and objects that a screen can show."""

import inspect
import re

import pytest

import cloneproof as cp
from support.command import run

MARKET = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5]))], horizon=7)
ASKED = {
    "audit": (MARKET, cp.mechanism("ucb1")), "evaluate": (MARKET, cp.mechanism("ucb1")),
    "gain": (MARKET, cp.mechanism("ucb1"), "ana", (2, 1)), "recommend": (MARKET,),
}  # fmt: skip


def test_examples_are_files_that_commands_read(tmp_path):
    for name in cp.examples.EXAMPLES:
        for place in ("one", "two"):
            assert run("example", name, tmp_path / f"{name}.{place}").returncode == 0
        assert (tmp_path / f"{name}.one").read_bytes() == (tmp_path / f"{name}.two").read_bytes()
    assert cp.load_market(tmp_path / "market.one") == cp.examples.market() == cp.load_market("examples/creators.toml")
    assert cp.load_market(tmp_path / "page.one").places == (1, 0.6, 0.4)
    log = cp.read_log(tmp_path / "log.one", same="title")
    assert {arm.agent for arm in log.arms} == {seller for seller, *_ in cp.examples.SHOP}
    assert sum(arm.rounds for arm in log.of("lampking")) > 0.5 * log.rounds  # copies pay under Thompson sampling
    board = cp.boards.read_board(tmp_path / "board.one", owners="first-word")
    assert sorted(board.names) == ["aurora", "birch", "cobalt", "dune", "ember"]
    assert len(board.models) == len(cp.examples.MODELS)


def test_the_rates_of_the_log_and_the_strengths_of_the_board_are_those_that_are_declared():
    log, board = cp.examples.log(), cp.boards.read_board(cp.examples.board(40_000), owners="first-word")
    for seller, titles, rate in cp.examples.SHOP[:2]:
        clicks = [click for who, title, click in zip(log["seller"], log["title"], log["click"], strict=True)
                  if who == seller and title in titles]  # fmt: skip
        assert sum(clicks) / len(clicks) == pytest.approx(rate, abs=5 * (rate / len(clicks)) ** 0.5)
    truth = [cp.examples.MODELS[model] for model in board.models]
    errors = [
        (own - board.ratings.mean()) - (true - sum(truth) / 12) for own, true in zip(board.ratings, truth, strict=True)
    ]
    assert max(map(abs, errors)) < 5 * 0.9 * board.errors.max() + 6  # a tenth are ties, which pull strengths together


def test_every_question_with_a_search_takes_seconds():
    taking = {name for name in cp.__all__ if callable(getattr(cp, name)) and not inspect.isclass(getattr(cp, name))
              and "search" in inspect.signature(getattr(cp, name)).parameters}  # fmt: skip
    assert taking == set(ASKED)
    for name, asked in ASKED.items():
        with pytest.raises(cp.errors.EngineError, match="seconds to be a number above 0"):
            getattr(cp, name)(*asked, seconds=-1)


def test_seconds_is_the_limit_of_the_search_and_leaves_the_rest_of_it():
    search = cp.Search(copies=2, seed=3)
    assert search.within(None) is search
    assert search.within(5) == cp.Search(copies=2, seed=3, seconds=5)


def test_a_market_of_any_size_fits_a_screen():
    prior = cp.Empirical([i / 900 for i in range(900)])
    agents = [cp.Agent(f"a name that is long {k} " * 9, 3, prior) for k in range(1000)]
    parts = {f"segment {k}": 1 / 1000 for k in range(1000)}
    big = cp.Market(agents, 10**6, segments=parts, positions=[1 / (k + 1) for k in range(1000)], gap=0.1)
    assert len(repr(big)) < 24 * 80
    assert "gap=0.1" in repr(big)
    ana = "Agent(name='ana', originals=2, prior=Discrete(values=(0.0, 1.0), weights=(0.5, 0.5)))"
    assert repr(MARKET) == f"Market(agents=({ana},), horizon=7)"


def test_a_session_says_where_it_is():
    live = cp.session(cp.mechanism("ucb1"), registered={f"agent {k}": 2 for k in range(1000)}, horizon=5000)
    live.reward(live.decide().id, 1.0)
    live.decide()
    assert repr(live) == "Session(ucb1, 2,000 arms of 1,000 agents, 2 decisions of 5,000, 1 wait for a reward)"
    assert repr(cp.Session.from_json(live.to_json())) == repr(live)


def test_the_help_begins_with_six_questions():
    text = inspect.getdoc(cp)
    questions = re.findall(r"^(\d)\. .*\?", text, flags=re.MULTILINE)
    assert questions == list("123456")
    assert text.count("\n>>> ") > 6
