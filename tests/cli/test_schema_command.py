"""Schemas: they take what the reader takes and refuse what it refuses, as far as a schema can; results fit theirs."""

import copy
import json
import random
import re
import tomllib
from pathlib import Path

import pytest
import tomli_w
from jsonschema_rs import Draft202012Validator, meta

import cloneproof as cp
from cloneproof._lib.checks import is_one_line
from cloneproof.cli.schema import printed_results, schema_of
from cloneproof.market.toml import market_from_toml
from cloneproof.schema import NAME
from support import command
from support.sizes import LONG

ROOT = Path(__file__).parents[2]
BASES = [  # every form of every part
    """
    horizon = 1e6
    share = 0.4
    gap = 0.1
    agent_gap = 0.2
    max_originals = 3
    delays = "independent"
    ends = "at-random"
    positions = [1, 0.5]
    rewards = { family = "gaussian", sd = 0.2 }
    agents = [
        { name = "ana", originals = 2, prior = { values = [0, 1], weights = [0.5, 0.5] } },
        { name = "bo", originals = 1, prior = { point = 0.6 } },
        { name = "cy", originals = 1, prior = { uniform = [0.1, 0.9] } },
        { name = "di", originals = 2, prior = [{ beta = [2, 60] }, { samples = [0.1, 0.2, 0.4], bins = 2 }] },
        { name = "ed", originals = 1, prior = { log_odds = [0.03, 0.5] } },
    ]
    """,
    """
    horizon = 100
    rewards = "bernoulli"
    positions = { code = [1], prose = [1, 0.5] }
    segments = { code = 0.25, prose = 0.75 }
    [[agents]]
    name = "ana"
    originals = 1
    segment_priors = { code = { point = 0.5 }, prose = { beta = [1, 1] } }
    [[agents]]
    name = "bo"
    originals = 1
    prior = { vectors = [{ code = 0.9, prose = 0.2 }], weights = [1.0] }
    [[agents]]
    name = "cy"
    originals = 1
    prior = { log_odds = [0.03, 0.5, 0.35] }
    [[agents]]
    name = "di"
    originals = 1
    prior = { segment_priors = { code = { point = 0.5 }, prose = { point = 0.1 } } }
    [[agents]]
    name = "ed"
    originals = 1
    prior = { average = { log_odds = [0.03, 0.5, 0.35] }, over = { code = 0.5, prose = 0.5 } }
    """,
]
ODD = (
    0, 1, -1, 2, 0.5, 1.5, 2.5, 10**16, True, "", "word", " ", "two\nlines", [], [0.5], [0.5, 0.5, 0.5, 0.5], {},
    {"point": 0.5}, {"odd": 1},
)  # fmt: skip
BEYOND = (  # what no schema says: sums, orders, lengths of two lists, and what one part says of another
    "sum to 1", "add up to 1", "one weight for each value", "expected distinct", "low end below its high end",
    "strictly between 0 and 1", "does not rise", "some attention", "priors? or .* of them", "max_originals to be",
    "for every segment", "unknown segment", "positions for each segment", "for the same segments", "places of a page",
)  # fmt: skip
MARKET = Draft202012Validator(schema_of("market"))


def places(data, path=()):
    """Every place in nested data."""
    if path:
        yield path
    for key in data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        yield from places(data[key], (*path, key))


def changed(data, dice):
    """The data with one place left out, doubled, misspelt or replaced; or with a key more."""
    made = copy.deepcopy(data)
    *parents, last = dice.choice(list(places(made)))
    owner = made
    for key in parents:
        owner = owner[key]
    how = dice.randrange(5)
    if how == 0:
        del owner[last]
    elif how == 1 and isinstance(owner, dict):
        owner[f"{last}s"] = owner.pop(last)
    elif how == 2 and isinstance(owner, list):
        owner.append(owner[last])
    elif how == 3 and isinstance(owner, dict):
        owner[dice.choice(["odd", "prior", "segment_priors", "beta", "share"])] = dice.choice(ODD)
    else:
        owner[last] = dice.choice(ODD)
    return made


def refusal(data):
    """What the reader says of a market file with these tables; None if it takes it."""
    try:
        market_from_toml(tomli_w.dumps(data))
    except cp.errors.MarketError as problem:
        return str(problem)
    return None


def test_every_market_file_of_the_repository_fits():
    files = [file for folder in ("examples", "tests", "docs") for file in (ROOT / folder).rglob("*.toml")]
    markets = [data for file in files if "agents" in (data := tomllib.loads(file.read_text(encoding="utf-8")))]
    assert markets
    for data in [*markets, *map(tomllib.loads, BASES)]:
        assert refusal(data) is None
        MARKET.validate(data)


@pytest.mark.parametrize("seed", range(4 if LONG else 1))
def test_schema_and_reader_refuse_the_same_files(seed):
    dice, refused, beyond = random.Random(seed), 0, 0
    for _ in range(4000 if LONG else 300):
        data = changed(dice.choice([tomllib.loads(base) for base in BASES]), dice)
        said, fits = refusal(data), MARKET.is_valid(data)
        if said is None:
            assert fits, (data, [str(each) for each in MARKET.iter_errors(data)][:1])
        elif fits:
            beyond += 1
            assert re.search("|".join(BEYOND), said), (said, data)
        refused += not fits
    assert refused > 4 * beyond > 0


def test_names_have_one_line_for_both():
    for number in [*range(0x300), *range(0x2000, 0x2100), 0xFEFF, 0x1F600]:
        letter = chr(number)
        assert bool(re.search(NAME, f"a{letter}b")) == is_one_line(f"a{letter}b"), hex(number)
    assert not re.search(NAME, "  ")


@pytest.mark.parametrize("what", ["market", *printed_results()])
def test_a_schema_is_one_and_the_command_prints_it(what):
    done = command.run("schema", what)
    assert (done.returncode, json.loads(done.stdout)) == (0, schema_of(what))
    meta.validate(schema_of(what))
    wanted = re.findall(r'"#/\$defs/(\w+)"', done.stdout)
    assert set(wanted) <= set(schema_of(what).get("$defs", {}))


def test_results_fit_their_schemas_and_changed_ones_do_not():
    """Also those with segments and infinities, which few commands of other tests print."""
    ana, bo = cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0))
    market = cp.Market([ana, bo], horizon=40, segments={"code": 0.5, "prose": 0.5})
    made = cp.mechanism("h-etc-r", agent_rounds=4, arm_rounds=2)
    alone = cp.Market([ana, bo], horizon=20)
    some = cp.Search(copies=2)
    found = [
        cp.audit(market, made, search=some),
        cp.audit(alone, made, agent="ana", opponents="any", search=some),
        cp.audit(alone, made, also=("withholding", "splitting", "informed"), search=some),
        cp.audit(alone, cp.mechanism("reservoir", rounds=2, draws=2, threshold=1)),
    ]
    assert any(each.by_segment for each in found)
    checker = command.schema("audit")
    for result in found:
        data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
        checker.validate(data)
        for wrong in ({"verdict": "safe"}, {"worst": None}, {"tried": [{}]}, {"new": 1}, {"notes": [1]}):
            assert not checker.is_valid(data | wrong)
        assert not checker.is_valid({key: each for key, each in data.items() if key != "scope"})
