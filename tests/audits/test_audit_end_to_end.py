"""`cloneproof audit` with all that it can write, as a platform would call it."""

import pytest

import cloneproof as cp
from support.command import run

COIN = cp.Discrete([0, 1], [0.5, 0.5])
MARKET = cp.Market([cp.Agent("ana", 2, COIN), cp.Agent("bo", 1, cp.Point(0.6))], horizon=400)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--agent", "eve"], "got 'eve'"),
        (["--max-copies", "0"], "copies"),
        (["--html", "no/such/folder/x.html"], "expected a folder"),
        (["--html", "."], "expected a file to write"),
        (["-m", "thompson", 10**8, "--seconds", "1"], "ask for a shorter horizon"),
        (["-m", "thompson", 10**9], "at most 100000000 rounds"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_no_file(tmp_path, options, words):
    market, page = tmp_path / "market.toml", tmp_path / "report.html"
    (rounds,) = [option for option in options if isinstance(option, int)] or [MARKET.horizon]
    options = [option for option in options if isinstance(option, str)]
    cp.save_market(MARKET.with_horizon(rounds), market)
    given = [] if "-m" in options else ["-m", "h-etc-r"]
    place = [] if "--html" in options else ["--html", page]
    done = run("audit", market, *given, *options, *place)
    code = 3 if "--seconds" in options else 2  # too little time is no mistake
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == [market]


@pytest.mark.parametrize("name", ["ucb1", "h-ucb"])
def test_an_interrupt_keeps_what_was_found(name):
    """Ctrl-C in an exact search and in a sampled one; before anything is known it is passed on."""
    prior = cp.Discrete([0, 1], [0.5, 0.5]) if name == "ucb1" else cp.Uniform(0.2, 0.8)
    market = cp.Market([cp.Agent("ana", 2, prior)], horizon=7 if name == "ucb1" else 500)
    asked = cp.Search(copies=3, runs=50)
    whole = cp.audit(market, cp.mechanism(name), search=asked)

    def stop_after(number):
        told = []

        def tell(done, total, what):
            told.append(what)
            if len(told) == number:
                raise KeyboardInterrupt

        return tell

    found = cp.audit(market, cp.mechanism(name), search=asked, progress=stop_after(3))
    assert found.interrupted
    assert not whole.interrupted
    assert 0 < len(found.tried) < len(whole.tried)
    assert {witness.copies: witness.gain.value for witness in found.tried}.items() <= {
        witness.copies: witness.gain.value for witness in whole.tried
    }.items() or name == "h-ucb"
