"""What a newcomer gets wrong: each gets one sentence (expected, got, what to do), never a traceback.

The calls stand as text, so that a failure is named by the call; the command line's are what would be typed.
"""

import inspect
import re
import shlex
from functools import partial
from pathlib import Path

import pytest

import cloneproof as cp
from cloneproof import bounds
from support.command import run

MARKET = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.6))], 50)
UCB1 = cp.mechanism("ucb1")
ALONE = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5]))], horizon=7)
AUDIT = cp.audit(ALONE, UCB1)
NAMES = {
    "cp": cp, "bounds": bounds, "Path": Path, "MARKET": MARKET, "UCB1": UCB1, "AUDIT": AUDIT,
    "HOLD_OUT": partial(cp.mechanism, "holdout-h-etc"),
}  # fmt: skip
GOOD = {  # an argument of each name of `cp.bounds`; strings, which no formula takes, are the bad ones
    "tail": "chernoff", "gaps": [0, 0.5], "means": [0.5, 0.2], "values": [0.2, 0.5], "holds": bool, "trial": abs,
    "gap": 0.5, "agent_gap": 0.5, "low": 0.1, "high": 0.5, "spread": 0.5,
}  # fmt: skip

CALLS = r"""
cp.evaluate(1, UCB1)
cp.evaluate("c.toml", UCB1)
cp.evaluate(MARKET, "ucb1")
cp.evaluate(MARKET, UCB1, copies=3)
cp.evaluate(MARKET, UCB1, copies={"ana": "21"})
cp.evaluate(MARKET, UCB1, copies={"ana": (10**12, 1)})
cp.evaluate(MARKET, UCB1, engine="magic")
cp.evaluate(MARKET, UCB1, arithmetic="int")
cp.evaluate(MARKET, UCB1, engine="monte-carlo", search=cp.Search(runs=-1))
cp.evaluate(MARKET, UCB1, engine="monte-carlo", search=cp.Search(runs=10**30))
cp.evaluate(MARKET, UCB1, engine="monte-carlo", confidence=1)
cp.evaluate(MARKET, UCB1, engine="monte-carlo", search=cp.Search(seed=-1))
cp.evaluate(MARKET, UCB1, engine="monte-carlo", threads=0)
cp.evaluate(MARKET, UCB1, engine="monte-carlo", threads=10**9, search=cp.Search(runs=10))
cp.evaluate(MARKET, UCB1, engine="monte-carlo", search=cp.Search(seconds=-1))
cp.evaluate(MARKET, UCB1, progress=3, engine="monte-carlo")
cp.gain(MARKET, UCB1, "nobody", (2, 1))
cp.gain(MARKET, UCB1, 3, (2, 1))
cp.gain(MARKET, UCB1, "ana", 2)
cp.gain(MARKET, UCB1, "ana", (2,))
cp.gain(MARKET, UCB1, "ana", (2, 1), confidence=2)
cp.audit(1, UCB1)
cp.audit(MARKET, "ucb1")
cp.audit(MARKET, UCB1, agent="nobody")
cp.audit(MARKET, UCB1, agent=["ana"])
cp.audit(MARKET, UCB1, search=cp.Search(copies=0))
cp.audit(MARKET, UCB1, opponents="all")
cp.audit(MARKET, UCB1, tolerance=-1)
cp.audit(MARKET, UCB1, horizons="a:b")
cp.audit(MARKET, UCB1, horizons=3)
cp.audit(MARKET, UCB1, horizons="5:1")
cp.audit(MARKET, UCB1, horizons="5")
cp.audit(MARKET, UCB1, horizons=[])
cp.audit(MARKET, UCB1, horizons=[0, 3])
cp.audit(MARKET, UCB1, opponents="any", horizons="1:5")
cp.audit(MARKET, UCB1, tolerance=float("nan"))
cp.equilibrium(MARKET, UCB1, max_copies=0)
cp.equilibrium(MARKET, UCB1, max_copies=500)
cp.equilibrium(MARKET, UCB1, steps=0)
cp.audit(MARKET, UCB1, search=cp.Search(seconds=0))
cp.audit(MARKET, lambda market: None)
cp.audit(MARKET, cp.BlackBox(lambda view: None), also=("withholding",))
cp.simulate(MARKET, UCB1, seed="x")
cp.simulate(MARKET, UCB1, run=-1)
cp.simulate(MARKET, UCB1, {"anna": (1, 1)})
cp.simulate(MARKET, UCB1, {"ana": (2,)})
cp.simulate(MARKET, UCB1, {"ana": (-1, 1)})
cp.simulate(MARKET, UCB1, {"ana": (0, 0)})
cp.simulate(MARKET, UCB1, {"ana": (1.5, 1)})
cp.mechanism("etc", market="c.toml")
cp.mechanism("etcc")
cp.mechanism(3)
cp.mechanism("etc")
cp.mechanism("etc", arm_rounds=2.5)
cp.mechanism("etc", rounds=3)
cp.mechanism("etc", arm_rounds=2, order=[])
cp.mechanism("etc", market=MARKET, factor=-1)
cp.mechanism("holdout-h-etc", agents=0, horizon=10, max_originals=1)
cp.mechanism("holdout-h-etc", agents=2, horizon="soon", max_originals=1)
cp.mechanism("holdout-h-etc", agents=2, horizon=10, max_originals=2, gap=0)
cp.Mechanism(arm="ucb")
cp.Mechanism(arm=cp.rule("ucb"), restart="sometimes")
cp.Mechanism(arm=cp.rule("ucb"), score="some")
cp.Mechanism(arm=cp.rule("ucb"), sample=3)
cp.Mechanism(arm=cp.rule("ucb"), fallback=3)
cp.Mechanism(arm=cp.rule("ucb"), name=3)
cp.Mechanism(arm=cp.rule("ucb"), parameters=3)
cp.Mechanism(arm=cp.rule("ucb"), claims="all")
cp.rule("ucbb")
cp.rule("etc")
cp.rule("etc", rounds=0)
cp.rule("ucb", constant=-1)
cp.rule("ucb", bonus=3)
cp.session("ucb1", {"ana": 1}, 10)
cp.session(UCB1, {"ana": 0}, 10)
cp.session(UCB1, 3, 10)
cp.session(UCB1, {"": 1}, 10)
cp.session(UCB1, {"ana": 1}, 0)
cp.session(UCB1, {"ana": 1}, 10, share=0)
cp.session(UCB1, {"ana": 1}, 10, rewards="gauss")
cp.session(UCB1, {"ana": 1}, 10, seed=1.5)
cp.session(UCB1, {"ana": 1}, 10).reward(1, 0.5)
cp.session(UCB1, {"ana": 1}, 10).decide_run("x")
cp.session(UCB1, {"ana": 1}, 10).reward_many([3])
cp.Session.from_json("x")
cp.Session.from_json("{}")
cp.Session.from_json(cp.session(UCB1, {"ana": 1}, 10).to_json(), mechanism="x")
cp.Agent("ana", 10**12, cp.Point(0.5))
cp.Agent("", 1, cp.Point(0.5))
cp.Agent("a\nb", 1, cp.Point(0.5))
cp.Agent(3, 1, cp.Point(0.5))
cp.Agent("ana", 1)
cp.Agent("ana", 1, [])
cp.Agent("ana", 2, [cp.Point(0.5)])
cp.Agent("ana", 2.5, cp.Point(0.5))
cp.Market([], 10)
cp.Market([cp.Agent("ana", 1, cp.Point(0.5))], 10**16)
cp.Market([cp.Agent("ana", 1, cp.Point(0.5))], 10, share=2)
cp.Market([cp.Agent("ana", 1, cp.Point(0.5))], 10, rewards=3)
cp.Market([cp.Agent("ana", 1, cp.Point(0.5))], 10, rewards={"family": "gaussian", "sd": -1})
cp.Market([cp.Agent("ana", 1, cp.Point(0.5))], 10, gap=0)
cp.Market([cp.Agent("ana", 1, cp.Point(0.5))], 10, max_originals=0)
cp.Point(2)
cp.Discrete([0, 1], [1])
cp.Discrete([0, 1], [-1, 2])
cp.Uniform(1, 0)
cp.Beta(0, 1)
cp.Beta(1e308, 1e308)
cp.Empirical([])
cp.Empirical([0.5], bins=0)
cp.load_market(3)
cp.load_market("missing.toml")
cp.save_market("c.toml", "d.toml")
cp.save_market(MARKET, 3)
cp.save_market(MARKET, "no/where.toml")
cp.sweep(3, ".")
cp.sweep("missing.toml", ".")
cp.sweep({}, ".")
cp.sweep({"market": "c.toml", "mechanism": "ucb1"}, ".")
cp.sweep({"market": MARKET, "mechanism": "ucb1"}, 3)
cp.sweep({"market": MARKET, "mechanism": "ucb1"}, ".", workers=0)
cp.sweep({"market": MARKET, "mechanism": "ucb1"}, ".", executor=3)
cp.BlackBox(3)
cp.BlackBox(max, call_limit=0)
cp.check_mechanism(3)
cp.write_certificate(3, "x.json")
cp.write_certificate(AUDIT, 3)
cp.write_certificate(AUDIT, ".")
cp.verify(3)
cp.verify("missing.json")
MARKET.at(3)
MARKET.at({"ana": (0.5,)})
MARKET.with_horizon("x")
cp.parts.Rule("mine", 3)
cp.parts.Rule("mine", max, explore=-1)
cp.parts.HoldOut(0, 1)
cp.parts.Sample("x")
cp.parts.Doubling(-1)
cp.results.write_replay(AUDIT, "x.json")
cp.paper.evaluate_horizons(MARKET, UCB1, [0])
cp.paper.evaluate_horizons(MARKET, UCB1, 5)
cp.paper.evaluate_horizons(MARKET, "ucb1", [5])
cp.paper.evaluate_horizons(MARKET, lambda market: None, [5])
cp.paper.evaluate_horizons(MARKET, cp.mechanism("thompson"), [500])
cp.paper.rp_regret(UCB1, "x", 7)
cp.paper.rp_regret(UCB1, cp.paper.Instance((1., 0.), (1, 1)), 0)
cp.paper.check_trp(UCB1, 3, 2, 7)
cp.paper.check_trp(UCB1, [0.5, 1.5], 2, 10)
cp.paper.check_trp(UCB1, [0, 1], 2, 10, max_copies=1)
cp.paper.check_trp(UCB1, [0, 1], 0, 10)
cp.paper.check_trp(UCB1, [k / 20 for k in range(21)], 6, 10)
cp.paper.check_trp(cp.mechanism("thompson"), [0, 0.5], 2, 100)
cp.paper.check_trp(UCB1, [0, 1], 2, -7)
cp.paper.check_permutation_invariance("x")
cp.paper.Instance(3, 4)
cp.paper.Instance((2.0,), (1,))
cp.Market([cp.Agent("ana", 1, cp.Point(0.5))] * 2, 10)
cp.Market([cp.Agent("ana", 1, cp.Point(0.5))], 10, share=float("nan"))
cp.Market([cp.Agent("ana", 1, cp.Point(0.5))], 10, delays="some")
cp.Market([cp.Agent("ana", 1, cp.Point(0.5))], 10, rewards="gausian")
cp.Market([cp.Agent("ana", 1, cp.Point(0.5))], 10, rewards={"family": "gaussian", "sdd": 1})
cp.Market([cp.Agent("ana", 1, cp.Point(0.5))], 10, rewards={"family": "beta", "concentration": -1})
cp.Market([cp.Agent("ana", 1, cp.Point(0.5))], 10, rewards={})
cp.Agent("ana\x1b[2J", 1, cp.Point(0.5))
cp.Agent("ana\ud800", 1, cp.Point(0.5))
cp.Point(float("nan"))
cp.Discrete([0, 1], [0.5, 0.6])
cp.Discrete([0, 0], [0.5, 0.5])
cp.Discrete([0, 2], [0.5, 0.5])
MARKET.at({"anna": (0.5, 0.5)})
cp.paper.Instance((0.5,), (1, 2))
cp.paper.Instance((0.5,), (1,)).permuted((1,))
list(cp.Market([cp.Agent("ana", 1, cp.Uniform())], 10).realisations())
cp.rule("ucb", konstant=1)
cp.rule("ucb", clock="late")
cp.rule("ucb", bonus=max, constant=1.0)
cp.rule("etc", rounds=2, choice="later")
cp.rule("epsilon-greedy", c=-1)
cp.mechanism("h-etc-r", agent_round=3, arm_rounds=3)
cp.mechanism("etc", market=cp.Market([cp.Agent("ana", 2, cp.Uniform())], horizon=50))
cp.mechanism("etc", arm_rounds=3, factor=2)
cp.mechanism("rh-ucb", sample_factor=0)
cp.mechanism("prior-independent-etc", power=0)
cp.Mechanism(arm=cp.rule("ucb"), restart="award")
cp.Mechanism(arm=cp.rule("ucb"), restart=cp.parts.Doubling())
cp.Mechanism(arm=cp.rule("ucb"), restart=cp.parts.HoldOutEpochs(2, 2))
cp.Mechanism(agent=cp.rule("etc", rounds=3), arm=cp.rule("ucb"), score=cp.parts.HoldOut(2, 2))
cp.Mechanism(agent=cp.rule("ucb"), arm=cp.rule("etc", rounds=3), score=cp.parts.HoldOut(2, 2))
cp.Mechanism(agent=cp.rule("etc", rounds=3), arm=cp.rule("etc", rounds=3), score=cp.parts.HoldOut(2, 2))
cp.Mechanism(arm=cp.rule("ucb"), sample=cp.parts.Sample(1.0))
cp.Mechanism(agent=cp.rule("ucb"), arm=cp.rule("ucb"), sample=cp.parts.Sample(1.0, "all"))
cp.Mechanism(arm=cp.rule("ucb"), score="hold-out")
cp.Mechanism(arm=cp.rule("ucb"), restart={"kind": "awards"})
cp.Mechanism(arm=cp.rule("ucb"), restart={})
cp.parts.Slots(-1)
cp.parts.Slots(2, fallback="none")
cp.parts.Rule("mine", max, slots=3)
cp.session(UCB1, {}, 10)
cp.session(UCB1, {"ana": 1}, 10, window=1.5)
cp.session(cp.mechanism("thompson"), {"ana": 1}, 5, rewards="gaussian")
HOLD_OUT(agents=3, horizon=100)
HOLD_OUT(agents=3, max_originals=2)
HOLD_OUT(agents=3, horizon=100, max_originals=2, agent_gap=2)
HOLD_OUT(agents=3, horizon=100, max_originals=2, gaps=0.1)
HOLD_OUT(horizon="unknown", max_originals=2, arm_rounds=3)
HOLD_OUT(horizon="unknown", max_originals=2, max_arms=1)
HOLD_OUT(agents=3, horizon=100, max_originals=2, rates=(0, 0.1), relative_gap=0.2)
HOLD_OUT(agents=3, horizon=100, max_originals=2, rates=(0.2, 0.1), relative_gap=0.2)
HOLD_OUT(agents=3, horizon=100, max_originals=2, rates=(0.1, 0.2), relative_gap=0)
HOLD_OUT(agents=3, horizon=100, max_originals=2, relative_gap=0.2)
HOLD_OUT(agents=3, horizon=100, max_originals=2, values=(0.1, 0.1 + 1e-9))
HOLD_OUT(agents=3, horizon=100, max_originals=2, values=(0.1,), gap=0.1)
HOLD_OUT(agents=3, horizon=100, max_originals=2, sub_gaussian=0)
HOLD_OUT()
bounds.doubling_arm_rounds(1000, 1e9)
bounds.second_account_floor(2, (0.5,), (1, 1))
bounds.second_account_floor(2, (0.5,), (0,))
AUDIT.to_markdown(columns="gain")
AUDIT.to_markdown(columns=["gian"])
AUDIT.to_markdown(digits=0)
""".strip().split("\n")

FILES = {
    "m.toml": 'horizon = 50\n[[agents]]\nname = "ana"\noriginals = 2\nprior = { point = 0.5 }\n',
    "big.toml": 'horizon = 50\n[[agents]]\nname = "ana"\noriginals = 1000000000000\nprior = { point = 0.5 }\n',
    "name.toml": 'horizon = 50\n[[agents]]\nname = "a\\nb"\noriginals = 2\nprior = { point = 0.5 }\n',
    "bad.toml": "horizon = ",
    "grid.toml": 'market = "m.toml"\nmechanism = "ucb1"\n',
    "gridbad.toml": 'market = "m.toml"\nmechanism = "ucb1"\nruns = "many"\n',
    "x.json": "{}",
}

COMMANDS = r"""
audit
audit m.toml
audit missing.toml -m ucb1
audit bad.toml -m ucb1
audit . -m ucb1
audit m.toml -m etc --set arm_rounds
audit m.toml -m etc --set arm_rounds=0
audit m.toml -m etc --set market=3
audit m.toml -m ucb1 --agent nobody
audit m.toml -m ucb1 --max-copies 0
audit m.toml -m ucb1 --opponents all
audit m.toml -m ucb1 --horizons 5
audit m.toml -m ucb1 --tolerance -1
audit m.toml -m ucb1 --seconds -1
audit m.toml -m ucb1 --seed -1
audit m.toml -m ucb1 --html no/where.html
audit m.toml -m ucb1 --certificate .
audit m.toml -m ucb1 --bogus
log missing.db
log missing.db --market feed
log m.toml --season 1
log m.toml x.json --market feed
evaluate m.toml
evaluate m.toml -m ucb1 --engine magic
evaluate m.toml -m ucb1 --arithmetic int
evaluate m.toml -m ucb1 --horizons x
evaluate m.toml -m ucb1 --copies ana
evaluate m.toml -m ucb1 --copies bo=1
evaluate m.toml -m ucb1 --copies ana=1,1 --copies ana=2,1
evaluate m.toml -m ucb1 --copies ana=99999999999999999999,1
evaluate m.toml -m ucb1 --engine monte-carlo --seconds 0
evaluate m.toml -m ucb1 --horizons 1:99999999
evaluate m.toml -m ucb1 --runs 0
evaluate m.toml -m ucb1 --seed -1
evaluate m.toml -m h-etc-r --set choice=never
play no/where.html
mechanisms missing.toml
mechanisms m.toml --award-table
sweep
sweep grid.toml
sweep missing.toml --store s
sweep gridbad.toml --store s
sweep grid.toml --store m.toml
sweep grid.toml --store s --output t.xls
sweep grid.toml --store s --output no/t.csv
sweep grid.toml --store s --cluster here
sweep grid.toml --store s --cluster local:0
sweep --status missing
verify
verify missing.json
verify x.json
verify .
reproduce
reproduce --out m.toml
reproduce --out r --only nothing
reproduce --out r --seed -1
serve .
serve s.db --port 99999
serve s.db --agent-rate -1
serve s.db --create-key king
replay missing.db
replay m.toml
""".strip().split("\n")


@pytest.mark.parametrize("call", CALLS)
def test_a_bad_call_gets_one_sentence(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(cp.errors.CloneproofError) as caught:
        eval(call, dict(NAMES))
    sentence = str(caught.value)
    assert re.search(
        r"expected .+ got\b|expects |^unknown |unknown agent| needs |^missing key|already has", sentence
    ), sentence
    assert ";" in sentence, sentence
    assert "\n" not in sentence
    assert len(sentence) < 500
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", bounds.__all__)
def test_a_bound_refuses_what_its_symbols_cannot_be(name):
    formula = getattr(bounds, name)
    good = {key: GOOD.get(key, 3) for key in inspect.signature(formula).parameters}
    if name == "uniform_etc_regret_at_least":
        good["means"] = [[0.5, 0.2], [0.1]]
    if name == "season_length":
        good["regret"] = abs
    if name == "variant_inflation_ceiling":
        good["spread"] = 0.01
    for key, value in good.items():
        bad = {bool: (), str: (), list: ([], 3, [-1], "x")}.get(type(value), ("x", -1, 0, float("nan")))
        for each in [value for value in bad if not (value == 0 and key in ("low", "high"))] + [[[]]]:
            if key == "tail" or (name, key, each) in (
                ("overtaken", "gap", 0),
                ("season_cost", "regret", 0),
                ("variant_inflation_ceiling", "spread", 0),
            ):
                continue
            with pytest.raises(cp.errors.MechanismError, match=r"^expected .* got .*;"):
                formula(**{**good, key: each})


@pytest.mark.parametrize("call", [call for call in CALLS if "c.toml" in call and "sweep" not in call])
def test_a_path_in_the_place_of_a_market_is_told_how_to_read_it(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(cp.errors.MarketError, match=r"cp\.load_market\(path\)"):
        eval(call, dict(NAMES))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_bad_command_gets_exit_code_2_and_leaves_nothing(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="utf-8")
    done = run(*shlex.split(command))
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert re.search(r"expected|unknown|needs|missing|No such option|Missing|Invalid value", done.stderr), done.stderr
    assert done.stdout == ""
    assert {path.name for path in tmp_path.iterdir()} == set(FILES)


def test_whole_floats_are_fine():
    market = cp.Market([cp.Agent("ana", 2.0, cp.Point(0.5))], horizon=1e2)
    assert (market.horizon, market.agents[0].originals) == (100, 2)
    assert type(market.horizon) is int
    sampled = [
        cp.evaluate(market, UCB1, {"ana": (2.0, 1)}, "monte-carlo", search=cp.Search(runs=n, seed=s))
        for n, s in ((8, 1), (8.0, 1.0))
    ]
    assert sampled[0] == sampled[1]
    assert bounds.etc_rounds(2.0, 0.5, 1e6) == bounds.etc_rounds(2, 0.5, 10**6)
