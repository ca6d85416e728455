"""Sessions in JavaScript against those of Python: decisions, payments and files of random seasons are equal."""

import json
import math
import random
import re
import subprocess

import pytest

import cloneproof as cp
from cloneproof import __version__
from cloneproof._randomness import uniform
from cloneproof.mechanisms import arithmetic
from support.javascript import HERE, MODULE, NAMES, PAGED, in_node, needed, played, random_case
from support.sizes import LONG

ROUNDS = 20_000 if LONG else 400
KINDS = [(name, False) for name in NAMES] + [(name, True) for name in PAGED]
IMPORTED = """async text => {
    const place = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    Object.assign(globalThis, await import(place));
}"""


def cases(rounds, numbers):
    return [random_case(name, number, rounds, paged) for name, paged in KINDS for number in numbers]


def body_of(file):
    """What a file says, without the ways to say it: pending decisions one by one, and what may be left out."""
    body = json.loads(json.loads(file)["body"])
    usual = {"ends": "at-horizon", "positions": None, "segments": [], "segment_of": [], "coins": []}
    body = usual | {key: value for key, value in body.items() if key != "joined"}
    first, *others = body["mechanism"].get("segments", {"": body["mechanism"]}).values()
    if all(other == first for other in others):
        body["mechanism"] = first
    each = []
    for *fields, steps in body["pending"]:
        own = fields + [-1, False, None, 0][len(fields) - 6 :]
        each += [[sum(steps[: k + 1]), *own] for k in range(len(steps))]
    body["pending"] = sorted(each)
    body.pop("closed", None)  # which windows ended: not told apart there
    for part in [body, *body.get("begun", {}).values()]:
        part.setdefault("coins", [])
        if body["positions"] is None and "machine" in part:
            part["machine"].pop("views", None)
    return body


def differences(seasons, found):
    """The seasons that Python plays otherwise."""
    for case, theirs in zip(seasons, found, strict=True):
        ours = played(case)
        alike = all(ours[key] == theirs[key] for key in ("shown", "payoff", "last"))
        if not alike or body_of(ours["file"]) != body_of(theirs["file"]):
            yield case["name"], case["rest"]


def test_node_decides_pays_and_saves_as_python_does():
    seasons = cases(ROUNDS, range(2))
    assert list(differences(seasons, in_node(seasons))) == []


def test_chromium_decides_pays_and_saves_as_python_does(browser):
    seasons, page = cases(ROUNDS if LONG else 150, range(2, 3)), browser.new_page()
    for text in (MODULE.read_text(encoding="utf-8"), (HERE / "driver.js").read_text(encoding="utf-8")):
        page.evaluate(IMPORTED, text)
    found = page.evaluate("cases => cases.map(one => played({ mechanism, session, Session }, one))", seasons)
    page.close()
    assert list(differences(seasons, found)) == []


@pytest.mark.parametrize(
    ("right", "wrong", "name", "paged"),
    [
        ("0x1ce4e5b9", "0x1ce4e5b8", "ucb1", False),  # a constant of the hash
        (" || late(a) - late(b)", "", "ucb1", False),  # ties go to the fewest rewards outstanding
        ("scans && missing && (best", "scans && (best", "reservoir", False),  # a commitment waits for rewards
        ("attention[place] * count", "count", "ucb1", True),  # a view counts as the attention of its place
        ("uniform(dice[agent], clock) * seen < last", "true", "reservoir", True),  # a click counts by attention
    ],
)
def test_a_module_that_is_a_little_wrong_is_noticed(tmp_path, right, wrong, name, paged):
    text = MODULE.read_text(encoding="utf-8")
    assert text.count(right) == 1
    (tmp_path / "wrong.mjs").write_text(text.replace(right, wrong), encoding="utf-8")
    seasons = [random_case(name, number, 300, paged) for number in range(6)]
    assert next(differences(seasons, in_node(seasons, tmp_path / "wrong.mjs")), None) is not None


def test_a_season_of_2000_requests_goes_from_python_to_node_and_back():
    case = random_case("reservoir-bars", 0, 2000) | {
        "segments": ["code", "2", "code", "1", "2"],
        "delays": [0, 3, 40, 7],
    }
    case["rest"] = {
        "seed": str((1 << 62) + 11),
        "segments": [["code", 0.4], ["2", 0.4], ["1", 0.2]],
        "weights": {"agent 0": [3, 1]},
    }
    case["registered"], case["rewards"] = [["agent 0", 2], ["agent 1", 4]], [0.25, 1.0, 0.0, 1.0, 0.7]
    case.pop("segmented", None)
    whole = played(case)
    parts = [case | {"begin": begin, "end": end} for begin, end in ((0, 700), (700, 1500), (1500, 2000))]
    first = played(parts[0])
    (second,) = in_node([parts[1] | {"file": first["file"]}])
    settled = cp.Session.from_json(second["file"])
    third = played(parts[2], settled)
    assert len(settled.pending) > 0  # rewards that are still to come
    for number in list(settled.pending):
        settled.reward(number, 1.0)
    shown = first["shown"] + second["shown"] + third["shown"]
    assert sum(one != other for one, other in zip(shown, whole["shown"], strict=True)) == 0  # replayed in Python
    assert (third["payoff"], settled.last) == (whole["payoff"], whole["last"])
    assert len(settled.ledger) == 2000


def test_files_have_no_whole_number_that_javascript_would_round():
    def checked(digits):
        assert abs(int(digits)) < 1 << 53, digits
        return int(digits)

    for case in cases(60, range(1)):
        file = played(case)["file"]
        json.loads(json.loads(file, parse_int=checked)["body"], parse_int=checked)


def in_module(tmp_path, expression):
    """The value of an expression inside the module."""
    program = tmp_path / "inside.mjs"
    program.write_text(
        MODULE.read_text(encoding="utf-8") + f"\nconsole.log(JSON.stringify({expression}));\n", encoding="utf-8"
    )
    done = subprocess.run([needed("node", "nodejs"), program], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_arithmetic_has_the_bits_of_python(tmp_path):
    dice = random.Random(5)
    times = [*range(1, 300), *(dice.randrange(1, 10**15) for _ in range(700))]
    small = [dice.random() ** dice.choice([1, 9, 40]) for _ in range(2000)]
    bounds = [(dice.choice([0.0, dice.random()]), dice.randrange(1, 4000), dice.uniform(0, 9)) for _ in range(2000)]
    betas = [(dice.uniform(1, 40), dice.uniform(1, 4), uniform(3, k)) for k in range(4000)]
    sums = [(dice.randrange(1 << 72), dice.randrange(1, 4000)) for _ in range(2000)]
    points = [*(dice.uniform(1, 1000) for _ in range(500)), 2.5]
    exact = json.dumps([[str(total), number] for total, number in sums])
    shown = f"""[[...ENDS], [...HEIGHTS], {times}.map(ln), {small}.map(log),
        {json.dumps(bounds)}.map(one => klUpperBound(...one)), {json.dumps(betas)}.map(one => betaVariate(...one)),
        {exact}.map(([total, number]) => mean(BigInt(total), number)), {points}.map(even),
        {points}.map(x => Number(x.toFixed(9)))]"""
    ends, heights, *rest = in_module(tmp_path, shown)
    assert (ends, heights) == (arithmetic.ENDS.tolist(), arithmetic.HEIGHTS.tolist())
    assert rest == [
        [*map(arithmetic.ln, times)],
        [*map(arithmetic.log, small)],
        [arithmetic.kl_upper_bound(*one) for one in bounds],
        [arithmetic.beta_variate(*one) for one in betas],
        [total / (n << 60) for total, n in sums],
        [*map(round, points)],
        [round(each, 9) for each in points],
    ]


REFUSED = {
    'mechanism("ucb")': "a mechanism, one of ucb1, kl-ucb",
    'mechanism("ucb1", { constnt: 1 })': "an option of ucb1, one of constant, clock",
    'mechanism("reservoir", { rounds: 3 })': "draws",
    'mechanism("reservoir", { rounds: 3, draws: 2, threshold: 4 })': "a threshold of at most the rounds",
    'mechanism("reservoir-bars", { bars: 1.5 })': "bars of at most 1",
    'mechanism("reservoir-bars", { bars: [0.2, 0.3] })': "that do not rise",
    "session(M, {}, 10)": "registered as agent to number of arms",
    "session(M, { ana: 0 }, 10)": "the arms of ana as a whole number",
    "session(M, { ana: 2 }, 0.5)": "horizon as a whole number",
    "session(M, { ana: 2 }, 10, { sed: 3 })": "a term of sessions in JavaScript, one of seed",
    "session(M, { ana: 2 }, 10, { seed: -1 })": "a whole seed from 0",
    "session(M, { ana: 2 }, 10, { weights: { ana: [1, 2] } })": "weights for a mechanism on draws",
    "session(B, { ana: 2 }, 10, { weights: { ana: [1] } })": "a weight for each arm of ana",
    "session(B, { ana: 2 }, 10, { weights: { ana: [1, null] } })": "each weight of ana",
    "session(B, { ana: 2 }, 10, { positions: 2 })": "a mechanism that fills pages",
    "session(M, { ana: 2 }, 10, { positions: [0.5, 1] })": "attention from 1 to 0 that does not rise",
    "session(M, { ana: 2 }, 10, { segments: { a: 0.5 } })": "fractions that add up to 1",
    "session(M, { ana: 2 }, 10, { segments: { a: 1 } }).decide()": "one of the segments a",
    "session(M, { ana: 2 }, 10).reward(1, 1)": "the id of a decision",
    "session(M, { ana: 2 }, 10, { positions: 2 }).decide()": "decideSlate()",
    "live.reward(1, 2)": "a reward in [0, 1]",
    "live.reward(1, 0.5)": "no other reward of decision 1",
    "live.decide()": "at most 1 decisions",
    'Session.fromJSON("{}")': "a session file of version 10",
    'Session.fromJSON({ ...live.toJSON(), body: "{}" })': "a session file as it was saved",
}


def test_bad_calls_get_one_sentence(tmp_path):
    calls = ", ".join(f"() => {call}" for call in REFUSED)
    program = f"""(() => {{
        const M = mechanism("ucb1"), B = mechanism("reservoir-bars", {{ bars: 0.5 }});
        const live = session(M, {{ ana: 2 }}, 1);
        live.reward(live.decide().id, 1);
        return [{calls}].map(call => {{
            try {{ call(); return "accepted"; }}
            catch (error) {{ return `${{error.constructor.name}} ${{error.message}}`; }}
        }});
    }})()"""
    told = in_module(tmp_path, program)
    for sentence, (call, part) in zip(told, REFUSED.items(), strict=True):
        assert re.fullmatch(r"CloneproofError expected [^\n]*, got [^\n]*; [^\n]+", sentence), (call, sentence)
        assert part in sentence, (call, sentence)


@pytest.mark.parametrize(
    ("options", "act", "word"),
    [
        ({"mechanism": cp.mechanism("etc", arm_rounds=3)}, None, "mechanism that JavaScript has"),
        (
            {"mechanism": cp.mechanism("reservoir", rounds=3, draws=2, threshold=2, fallback="draw")},
            None,
            "mechanism that JavaScript has",
        ),
        ({"uniform_traffic": 0.1}, None, "uniform_traffic"),
        ({"seed": bytes(32)}, None, "whole seed"),
        ({"segments": {"a": 1}, "positions": {"a": [1, 0.5]}}, None, "positions"),
        ({"rewards": "gaussian"}, None, "rewards"),
        ({}, lambda live: live.withdraw("ana", 0), "withdrawn"),
    ],
)
def test_sessions_that_javascript_cannot_go_on_with_are_refused(tmp_path, options, act, word):
    made = options.pop("mechanism", cp.mechanism("ucb1"))
    live = cp.session(made, {"ana": 2, "bo": 1}, 10, **options)
    if act:
        act(live)
    read = f"Session.fromJSON({json.dumps(live.to_json())})"
    assert word in in_module(tmp_path, f"(() => {{ try {{ {read}; }} catch (error) {{ return error.message; }} }})()")


OFFLINE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ENETUNREACH", "ERR_SOCKET", "network")


def test_a_typescript_program_installs_the_tarball_and_its_types_are_checked(tmp_path):
    npm = needed("npm", "npm")

    def ran(*command):
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    packed = ran(npm, "pack", "--silent", MODULE.parent)
    tarball = f"cloneproof-{__version__}.tgz"
    assert packed.stdout.split() == [tarball], packed.stderr
    (tmp_path / "package.json").write_text('{ "type": "module", "private": true }')
    installed = ran(npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", f"./{tarball}", "typescript@5.9")
    if installed.returncode and any(word in installed.stderr for word in OFFLINE):
        pytest.skip("npm reaches no registry, so TypeScript cannot be installed")
    assert installed.returncode == 0, installed.stderr
    (tmp_path / "program.ts").write_text((HERE / "program.ts").read_text())
    options = "--strict --module nodenext --target es2022 --lib es2022,dom"
    checked = ran(needed("node", "nodejs"), "node_modules/typescript/bin/tsc", *options.split(), "program.ts")
    assert (checked.returncode, checked.stdout) == (0, "")
    done = ran(needed("node", "nodejs"), "program.js")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["round"] == 300
    assert math.isclose(sum(told["payoff"].values()), sum(k % 3 > 0 for k in range(5, 300)))


def test_it_is_one_small_file_without_dependencies():
    text = MODULE.read_text(encoding="utf-8")
    assert len(text.encode()) <= 30_000
    assert not re.search(r"\bimport\b|\brequire\b|https?://", text)
    manifest = json.loads((MODULE.parent / "package.json").read_text())
    assert manifest["version"] == __version__
    assert "dependencies" not in manifest
    assert (MODULE.parent / "README.md").read_text().count("\n") <= 30
