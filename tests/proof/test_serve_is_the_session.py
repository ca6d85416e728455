"""The loop that the machine-checked theorem is about (proof/serve.v) serves as the online session does, case by case.

The Coq definition is extracted to OCaml. A session whose rewards are all 0 shows the order of the agents, what every
draw holds and whose the fallback draw is; the loop then has to foretell a session of the same seed whose rewards are
coins. Rewards of 0 and 1 are their own coins. `CLONEPROOF_BRIDGE_CASES` says how many cases.
"""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

import cloneproof as cp

PROOF = Path(__file__).parents[2] / "proof"
CASES = int(os.environ.get("CLONEPROOF_BRIDGE_CASES", "200"))
TOOLS = ("coqc", "ocamlopt")
BROKEN = {
    "ties to the later slot": ("if b.2 < k then", "if b.2 <= k then"),
    "a pass before the last pull": ("if i.+1 < pulls then", "if (i.+1 < pulls) && (k < threshold) then"),
    "a failure before the last pull": ("if i.+1 < pulls then", "if (i.+1 < pulls) && (threshold + i < k + pulls) then"),
    "a pass needs one more": ("if threshold <= k then", "if threshold < k then"),
    "all draws of an agent at once": ("nth 0 order (q %% size order)", "nth 0 order (q %/ draws)"),
    "the other fallback": ("if fresh then tests else b.1", "if fresh then b.1 else tests"),
}


def compiled(folder, broken=None):
    """The loop as a program, built from the Coq definition, with one place of it changed if asked for."""
    source = (PROOF / "serve.v").read_text(encoding="utf-8")
    if broken is not None:
        assert source.count(broken[0]) == 1
        source = source.replace(*broken)
    folder.mkdir()
    (folder / "serve.v").write_text(source, encoding="utf-8")
    shutil.copy(PROOF / "extract.v", folder)
    shutil.copy(PROOF / "bridge.ml", folder)
    for command in (
        ["coqc", "-w", "none", "-R", ".", "Cloneproof", "serve.v"],
        ["coqc", "-w", "none", "-R", ".", "Cloneproof", "extract.v"],
        ["ocamlopt", "-w", "-a", "-o", "bridge", "loop_that_runs.mli", "loop_that_runs.ml", "bridge.ml"],
    ):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "bridge"


def answers(program, cases):
    """Whom the program serves in each round of each case."""
    lines = "".join(" ".join(map(str, case)) + "\n" for case in cases)
    printed = subprocess.run([program], input=lines, text=True, check=True, capture_output=True).stdout
    return printed.splitlines()


def run(mechanism, arms, horizon, seed, reward):
    """The decisions of a session in which the reward of a pull is `reward(slot, pull)`."""
    live, pulls, decisions = cp.session(mechanism, arms, horizon, seed=seed), {}, []
    for _ in range(horizon):
        decision = live.decide()
        pull = pulls[decision.slot] = pulls.get(decision.slot, -1) + 1
        live.reward(decision.id, float(reward(decision.slot, pull)))
        decisions.append(decision)
    return decisions


def session_case(draw):
    """A random case for the loop, and what the session does in it."""
    agents, pulls, draws = draw.randint(1, 4), draw.randint(1, 5), draw.randint(1, 4)
    kind = draw.choice(["best", "fresh", "best of all"])
    threshold = draw.randint(1, pulls) if kind != "best of all" else pulls + 1
    options = {"choose": "best"} if kind == "best of all" else {"threshold": threshold}
    options["fallback"] = "draw" if kind == "fresh" else "best"
    mechanism = cp.mechanism("reservoir", rounds=pulls, draws=draws, **options)
    names = [f"agent {i}" for i in range(agents)]
    arms, seed, slots = {name: draw.randint(1, 4) for name in names}, draw.randrange(2**32), agents * draws
    shown = {d.slot: (names.index(d.agent), d.arm) for d in run(mechanism, arms, slots * pulls + 1, seed, lambda *_: 0)}
    order = [shown[slot][0] for slot in range(agents)]
    assert sorted(order) == list(range(agents))
    lot, fallback = shown.get(slots, (0, 0))
    holds = [[shown[level * agents + order.index(i)][1] for level in range(draws)] + [0] for i in range(agents)]
    holds[lot][draws] = fallback
    chance = draw.random()
    coins = [[int(draw.random() < chance) for _ in range(pulls)] for _ in range(slots)]
    horizon = draw.randint(1, slots * pulls + 5)
    decisions = run(
        mechanism, arms, horizon, seed,
        lambda slot, pull: coins[slot][pull] if slot < slots and pull < pulls else draw.randint(0, 1),
    )  # fmt: skip
    case = [pulls, draws, threshold, int(kind == "fresh"), lot, horizon, agents, *order]
    case += [arm for held in holds for arm in held] + [coin for row in coins for coin in row]
    return case, " ".join(f"{names.index(d.agent)}:{d.arm}:{d.phase}" for d in decisions)


@pytest.fixture(scope="module")
def cases():
    """Cases for the loop, with what the session does; or a sentence where Coq or OCaml is missing."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        sentence = f"no {' and no '.join(missing)} here: install coq, mathcomp and ocaml as proof/README.md says"
        if os.environ.get("CLONEPROOF_CI") == "1":
            pytest.fail(sentence)
        pytest.skip(sentence)
    draw = random.Random(29)
    return [session_case(draw) for _ in range(CASES)]


def test_the_loop_foretells_the_session(cases, tmp_path):
    given, sessions = zip(*cases, strict=True)
    assert answers(compiled(tmp_path / "proof"), given) == list(sessions)


@pytest.mark.parametrize("name", BROKEN if CASES >= 1000 else list(BROKEN)[:1])
def test_a_broken_loop_does_not(cases, tmp_path, name):
    given, sessions = zip(*cases, strict=True)
    assert answers(compiled(tmp_path / "proof", BROKEN[name]), given) != list(sessions)
