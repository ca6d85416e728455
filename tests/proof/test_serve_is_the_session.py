"""The loop that the machine-checked theorem is about (proof/serve.v) serves as the online session does, case by case.

The Coq definitions are extracted to OCaml, those of pages (proof/slate.v) too. The loop gets the words of the random
streams and the rewards, and makes the order of the agents, what every draw holds, whose the fallback draw is and all
coins of them; then it has to foretell whom a session of the same seed serves. In a session with segments it foretells
each of them by itself, in whatever order users arrive. Faults planted in the loop, and in the session, are noticed.
`CLONEPROOF_BRIDGE_CASES` says how many cases.
"""

import os
import random
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

import cloneproof as cp
from cloneproof._lib.randomness import substream, uniform, word
from cloneproof._lib.ticks import ONE
from cloneproof.mechanisms import registration, segment, streams
from cloneproof.mechanisms.reservoir import pages, rank, timetable
from cloneproof.mechanisms.reservoir.pages import LaboratoryState
from cloneproof.mechanisms.reservoir.rank import SlotLevel
from cloneproof.mechanisms.reservoir.reservoirs import Scan
from cloneproof.mechanisms.session import Session

PROOF = Path(__file__).parents[2] / "proof"
CASES = int(os.environ.get("CLONEPROOF_BRIDGE_CASES", "200"))
TOOLS = ("coqc", "ocamlopt")
BROKEN = {
    "ties to the later slot": ("serve.v", "if b.2 < k then", "if b.2 <= k then"),
    "a pass before the last pull": ("serve.v", "if i.+1 < pulls then", "if (i.+1 < pulls) && (k < threshold) then"),
    "a failure before the last pull": (
        "serve.v",
        "if i.+1 < pulls then",
        "if (i.+1 < pulls) && (threshold + i < k + pulls) then",
    ),
    "a pass needs one more": ("serve.v", "if threshold <= k then", "if threshold < k then"),
    "all draws of an agent at once": ("serve.v", "nth 0 order (q %% size order)", "nth 0 order (q %/ draws)"),
    "the other fallback": ("serve.v", "if fresh then tests else b.1", "if fresh then b.1 else tests"),
    "ties to the later draw": ("slate.v", "if f b < f s'", "if f b <= f s'"),
    "a rotation by two": ("slate.v", "(index i order + t) %% agents", "(index i order + t.*2) %% agents"),
    "a page too few": ("slate.v", "(iota tests_end (t - tests_end))", "(iota tests_end (t.-1 - tests_end))"),
    "ties against the lot": ("slate.v", "(index j order < index i order)", "(index i order < index j order)"),
    "everybody's clicks": ("slate.v", "(agents <= places) || (i == nth", "(agents <= places) || (0 <= nth"),
}


class Case(NamedTuple):
    """A mechanism with its numbers, what is registered, a seed, and the reward of each pull of each test.

    `weights` has those of agents that declare some, by number. The case may be one segment of a session, by number.
    """

    pulls: int
    draws: int
    threshold: int
    kind: str
    arms: tuple[int, ...]
    seed: int
    rounds: int
    rewards: tuple[tuple[float, ...], ...]
    weights: dict[int, tuple[int, ...]]
    segment: int | None = None

    def line(self):
        """The case as the loop's program reads it: numbers, words by their place, rewards."""
        agents, draws, pulls = range(len(self.arms)), range(self.draws), range(self.pulls)
        place = () if self.segment is None else (streams.SEGMENTS_STREAM, self.segment)
        levels = substream(0, self.seed, *place, streams.STATE_STREAM, streams.LEVELS_STREAM, 0)
        draws_of_all = substream(0, self.seed, streams.STATE_STREAM, streams.LEVELS_STREAM, 0)
        slots = [substream(draws_of_all, i + 1, streams.SLOT_STREAM) for i in agents]
        coins = substream(0, self.seed, *place, streams.COINS_STREAM, 0)
        words = [word(substream(levels, 0, streams.ORDER_STREAM), i) for i in agents]
        words.append(0)  # the lot of a fresh draw, which the theorem has and sessions have not
        words += [word(slots[i], slot) for i in agents for slot in range(self.draws + 1)]
        words += [word(substream(coins, i, 1 + draw), pull) for i in agents for draw in draws for pull in pulls]
        numbers = [0, self.pulls, self.draws, self.threshold, 0, self.rounds, len(self.arms), *self.arms]
        numbers += [weight for i in agents for weight in self.weights.get(i, (1,) * self.arms[i])]
        return " ".join(map(str, numbers + words + [value.hex() for row in self.rewards for value in row]))

    def mechanism(self):
        options = {"choose": "best"} if self.kind == "best of all" else {"threshold": self.threshold}
        return cp.mechanism("reservoir", rounds=self.pulls, draws=self.draws, **options)


def served(cases, arrivals):
    """Whom one session serves in each round of each case: one alone, or the segments of a market in which users arrive.

    `arrivals` has the number of the case in each round.
    """
    first = cases[0]
    names = [None] if first.segment is None else [f"segment {number}" for number in range(len(cases))]
    made = [case.mechanism() for case in cases]
    terms = {} if names == [None] else {"segments": dict.fromkeys(names, 1 / len(names))}
    live = cp.session(
        dict(zip(names, made, strict=True)) if terms else made[0],
        dict(zip("abcd", first.arms, strict=False)),
        len(arrivals),
        seed=first.seed,
        weights={"abcd"[i]: own for i, own in first.weights.items()},
        **terms,
    )
    pulls, shown = [Counter() for _ in cases], [[] for _ in cases]
    for number in arrivals:
        case, decision = cases[number], live.decide(names[number])
        slot, done = decision.slot, pulls[number]
        tested = slot < len(case.rewards) and done[slot] < case.pulls
        live.reward(decision.id, case.rewards[slot][done[slot]] if tested else 0.9)
        done[slot] += 1
        shown[number].append(f"{'abcd'.index(decision.agent)}:{decision.arm}:{decision.phase}")
    return [" ".join(each) for each in shown]


class PageCase(NamedTuple):
    """A market with pages: tests of `views` views a place, the attention of each place, and who would be clicked."""

    views: int
    draws: int
    attention: tuple[float, ...]
    arms: tuple[int, ...]
    seed: int
    clicks: tuple[tuple[int, ...], ...]  # of each agent on each page
    weights: dict[int, tuple[int, ...]]

    def line(self):
        """The case as the program reads it: numbers, words by their place, attention, clicks."""
        agents, pages, places = range(len(self.arms)), len(self.clicks[0]), len(self.attention)
        levels = substream(0, self.seed, streams.STATE_STREAM, streams.LEVELS_STREAM, 0)
        slots = [substream(levels, i + 1, streams.SLOT_STREAM) for i in agents]
        coins = [substream(levels, 0, streams.COIN_STREAM, i) for i in agents]
        words = [word(substream(levels, 0, streams.ORDER_STREAM), i) for i in agents]
        words += [word(slots[i], draw) for i in agents for draw in range(self.draws)]
        words += [word(coins[i], page) for i in agents for page in range(pages)]
        numbers = [places, self.views, self.draws, 0, 0, pages, len(self.arms), *self.arms]
        numbers += [weight for i in agents for weight in self.weights.get(i, (1,) * self.arms[i])]
        clicks = [click for own in self.clicks for click in own]
        return " ".join(map(str, [*numbers, *words, *(each.hex() for each in self.attention), *clicks]))


def served_pages(case):
    """Whom a session shows on each page, place by place."""
    live = cp.session(
        cp.mechanism("reservoir", rounds=case.views, draws=case.draws),
        dict(zip("abcd", case.arms, strict=False)),
        len(case.clicks[0]),
        seed=case.seed,
        weights={"abcd"[i]: own for i, own in case.weights.items()},
        positions=case.attention,
    )
    pages = []
    for page in range(len(case.clicks[0])):
        slate = live.decide_slate()
        for each in slate:
            live.reward(each.id, case.clicks["abcd".index(each.agent)][page])
        pages.append(",".join(f"{'abcd'.index(each.agent)}:{each.arm}:{each.phase}" for each in slate))
    return " ".join(pages)


def random_case(draw, like=None):
    """A case, for the agents of another one if that is given; rewards are inside (0, 1), 0 or 1."""
    agents, pulls, draws = (
        draw.randint(1, 4) if like is None else len(like.arms),
        draw.randint(1, 5),
        draw.randint(1, 4),
    )
    kind = draw.choice(["best", "best of all"])
    threshold = draw.randint(1, pulls) if kind != "best of all" else pulls + 1
    arms, seed = tuple(draw.randint(1, 4) for _ in range(agents)), draw.randrange(2**32)
    low = draw.choice([-1.0, -0.2, 0.0, 0.5])
    rewards = [[min(1.0, max(0.0, draw.uniform(low, 1.2 + low))) for _ in range(pulls)] for _ in range(agents * draws)]
    rounds = draw.randint(1, agents * draws * pulls + 5)
    dice = random.Random(seed)
    weights = {i: tuple(dice.choice((0, 1, 1, 2, 3, 1000)) for _ in range(arms[i])) for i in range(agents)}
    declared = {i: own for i, own in weights.items() if any(own) and dice.random() < 0.4}
    if like is not None:
        arms, seed, declared = like.arms, like.seed, like.weights
    return Case(pulls, draws, threshold, kind, arms, seed, rounds, tuple(map(tuple, rewards)), declared)


def random_segments(draw):
    """The segments of a market as cases, with one list of each agent, and the order in which their users arrive."""
    first = random_case(draw)
    parts = [first, *(random_case(draw, first) for _ in range(draw.randint(1, 3)))]
    arrivals = [number for number, part in enumerate(parts) for _ in range(part.rounds)]
    return [part._replace(segment=number) for number, part in enumerate(parts)], draw.sample(arrivals, len(arrivals))


def random_pages(draw):
    """A market with pages; agents differ in how often they are clicked, so that ranks change."""
    case = random_case(draw)
    agents, views = len(case.arms), draw.randint(1, 2)
    attention = sorted((draw.choice((1.0, 0.7, 0.5, 0.25, 0.1)) for _ in range(draw.randint(2, 5))), reverse=True)
    pages = draw.randint(1, agents * case.draws * views + 12)
    rates = [draw.choice((0.1, 0.5, 0.5, 0.9)) for _ in range(agents)]
    clicks = tuple(tuple(int(draw.random() < rate) for _ in range(pages)) for rate in rates)
    return PageCase(views, case.draws, tuple(attention), case.arms, case.seed, clicks, case.weights)


def compiled(folder, broken=None):
    """The loop as a program, built from the Coq definitions, with one place of them changed if asked for."""
    folder.mkdir()
    for name in ("serve.v", "slate.v", "extract.v", "bridge.ml"):
        source = (PROOF / name).read_text(encoding="utf-8")
        if broken is not None and name == broken[0]:
            assert source.count(broken[1]) == 1
            source = source.replace(*broken[1:])
        (folder / name).write_text(source, encoding="utf-8")
    for command in (
        *(["coqc", "-w", "none", "-R", ".", "Cloneproof", f"{name}.v"] for name in ("serve", "slate", "extract")),
        ["ocamlopt", "-w", "-a", "-o", "bridge", "loop_that_runs.mli", "loop_that_runs.ml", "bridge.ml"],
    ):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "bridge"


def answers(program, cases):
    """Whom the program serves in each round of each case."""
    lines = "".join(case.line() + "\n" for case in cases)
    return subprocess.run([program], input=lines, text=True, check=True, capture_output=True).stdout.splitlines()


@pytest.fixture(scope="module")
def cases():
    """Random cases; or a sentence where Coq or OCaml is missing."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        sentence = f"no {' and no '.join(missing)} here: install coq, mathcomp and ocaml as proof/README.md says"
        if os.environ.get("CLONEPROOF_CI") == "1":
            pytest.fail(sentence)
        pytest.skip(sentence)
    draw = random.Random(29)
    return [random_case(draw) for _ in range(CASES)]


@pytest.fixture(scope="module")
def segmented(cases):
    """Markets with segments, a quarter as many."""
    draw = random.Random(41)
    return [random_segments(draw) for _ in range(len(cases) // 4)]


@pytest.fixture(scope="module")
def program(cases, tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("bridge") / "proof")


@pytest.fixture(scope="module")
def foretold(cases, program):
    return answers(program, cases)


@pytest.fixture(scope="module")
def foretold_by_segment(segmented, program):
    return answers(program, [part for parts, _ in segmented for part in parts])


def session_answers(cases):
    return [shown for case in cases for shown in served([case], [0] * case.rounds)]


def test_the_loop_foretells_the_session(cases, foretold):
    assert foretold == session_answers(cases)


def test_the_loop_foretells_each_segment(segmented, foretold_by_segment):
    assert foretold_by_segment == [shown for parts, arrivals in segmented for shown in served(parts, arrivals)]


@pytest.fixture(scope="module")
def paged(cases):
    """Markets with pages, a quarter as many."""
    draw = random.Random(42)
    return [random_pages(draw) for _ in range(len(cases) // 4)]


@pytest.fixture(scope="module")
def foretold_pages(paged, program):
    return answers(program, paged)


def test_what_the_theorem_is_about_foretells_each_page(paged, foretold_pages):
    assert foretold_pages == [served_pages(case) for case in paged]


@pytest.mark.parametrize("name", BROKEN if CASES >= 1000 else list(BROKEN)[:1])
def test_a_broken_loop_does_not(cases, paged, foretold, foretold_pages, tmp_path, name):
    assert answers(compiled(tmp_path / "proof", BROKEN[name]), [*cases, *paged]) != [*foretold, *foretold_pages]


def slots_without_replacement(rule, stream, pool):
    """Draws that avoid what was drawn before, as long as they can."""
    ranked = sorted(set(pool), key=lambda arm: word(substream(stream, streams.SLOT_STREAM), arm))
    return [ranked[slot % len(ranked)] for slot in range(rule.draws)]


def slots_of_the_first_arm(rule, stream, pool):
    """A draw that favours the first arm: the smaller of two."""
    draws = substream(stream, streams.SLOT_STREAM)
    return [pool[int(min(uniform(draws, slot), uniform(draws, 99 + slot)) * len(pool))] for slot in range(rule.draws)]


def in_the_order_of_registration(self, mechanism, setup):
    """The timetable that the order of registration gives."""
    original_start(self, mechanism, setup)
    ranked = sorted(range(len(self.candidates)), key=lambda k: (k // len(self.order), self.candidates[k][0]))
    self.candidates[:] = [self.candidates[k] for k in ranked]


def ties_to_the_later(self):
    """The best count, ties to the later slot."""
    k = original_pick(self)
    if self.choice is not None and self.rank[k] > self.judge.start:
        self.choice = k = max(range(len(self.rank)), key=lambda each: (-self.rank[each], each))
    return k


def pass_with_one_more(rounds, threshold):
    return original_test(rounds, None if threshold is None else threshold + 1)


def pass_at_once(self, k, ticks, place):
    """A test that ends when it reaches the threshold."""
    threshold = self.rule.threshold
    if threshold is not None and self.total[k] + ticks >= threshold * ONE:
        self.purse[k] = 1
    original_add(self, k, ticks, place)


original_start, original_pick, original_test = timetable.SlotState.__init__, SlotLevel.pick, rank.first_pass
original_add = SlotLevel.add
FAULTS = {
    "weights ignored": (registration.WeightedArms, "__getitem__", lambda self, place: self._arms[
        place * len(self._arms) // len(self)]),
    "draws without replacement": (rank, "agent_slots", slots_without_replacement),
    "draws that favour the first arm": (rank, "agent_slots", slots_of_the_first_arm),
    "agents in the order of registration": (timetable.SlotState, "__init__", in_the_order_of_registration),
    "a coin of its decision": (streams.Coins, "of", lambda self, decision, _: uniform(self.stream, decision)),
    "one coin for a whole test": (streams.Coins, "of", lambda self, decision, allocation: uniform(
        substream(self.stream, 0, allocation.agent, self.places.pop(decision)[0]), 0)),
    "rewards rounded to coins": (streams.Coins, "of", lambda self, decision, _: 0.5),
    "coins that help": (streams.Coins, "of", lambda self, decision, allocation: uniform(
        substream(self.stream, 0, allocation.agent, self.places[decision][0]), self.places.pop(decision)[1]) ** 2),
    "a pass needs one more": (rank, "first_pass", pass_with_one_more),
    "a pass before the last pull": (SlotLevel, "add", pass_at_once),
    "ties to the later slot": (SlotLevel, "pick", ties_to_the_later),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_broken_session_is_not_foretold(cases, foretold, monkeypatch, name):
    monkeypatch.setattr(*FAULTS[name])
    assert foretold[:60] != session_answers(cases[:60])


def one_search_for_all(self, name, joined=None):
    """A segment that goes on where the first one is."""
    return next(iter(self.begun.values()), None) or original_segment(self, name, joined)


def draws_of_its_own(self, setup):
    return original_state(self, setup._replace(slots=setup.stream))


def all_from_one_stream(self, setup):
    return original_state(self, setup._replace(stream=setup.slots))


def coins_of_all(state, stream, keys, by_pull):
    return streams.coins_of(state, 0, keys, by_pull)


original_segment, original_state = Session._new_segment, Scan.open
SEGMENT_FAULTS = {
    "one search for all segments": (Session, "_new_segment", one_search_for_all),
    "draws of each segment's own": (Scan, "open", draws_of_its_own),
    "one order of agents for all": (Scan, "open", all_from_one_stream),
    "the same coins in all segments": (segment, "coins_of", coins_of_all),
}


@pytest.mark.parametrize("name", SEGMENT_FAULTS)
def test_broken_segments_are_not_foretold(segmented, foretold_by_segment, monkeypatch, name):
    monkeypatch.setattr(*SEGMENT_FAULTS[name])
    found = [shown for parts, arrivals in segmented[:20] for shown in served(parts, arrivals)]
    assert foretold_by_segment[: len(found)] != found


def champion_of_the_last_test(self, clock):
    """Everybody goes on with its last draw after the tests."""
    waits = original_close(self, clock)
    for i in range(self.agents if self.resting else 0):
        self._show_draw(i, self.blocks - 1, known=True)
    return waits


def ranks_that_wait(self, i):
    """A score that rises moves nobody."""


def all_clicks(stream, page, last, seen):
    return True


def nobody_in_turn(self, d, counts=True):
    return [pages.Seat(i, True, "award") for i in self.ranking[: self.filled]]


def rotation_that_stands(self, turn, counts):
    return [pages.Seat(self.order[place], counts, "trial") for place in range(self.filled)]


original_close = LaboratoryState._close_block
PAGE_FAULTS = {
    "the last draw is champion": (LaboratoryState, "_close_block", champion_of_the_last_test),
    "ranks as they were": (LaboratoryState, "_climb", ranks_that_wait),
    "clicks in better places count more": (pages, "counts_click", all_clicks),
    "nobody is designated": (LaboratoryState, "_by_score", nobody_in_turn),
    "no rotation": (LaboratoryState, "_rotation", rotation_that_stands),
}


@pytest.mark.parametrize("name", PAGE_FAULTS)
def test_broken_pages_of_a_session_are_not_foretold(paged, foretold_pages, monkeypatch, name):
    monkeypatch.setattr(*PAGE_FAULTS[name])
    assert foretold_pages[:40] != [served_pages(case) for case in paged[:40]]
