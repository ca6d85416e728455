"""The page that moves, in a real browser: its rules decide as sessions do with the same seed, and people can use it."""

import random
import re
from importlib.util import find_spec

import numpy as np
import pytest

import cloneproof as cp
from cloneproof._randomness import substream, uniform
from cloneproof.report.page import playground
from cloneproof.report.style import look
from support.browser import sticking_out, visit
from support.command import run
from support.sizes import LONG

CASES, ROUNDS = (10, 2000) if LONG else (3, 700)  # random markets of each rule, and the pages in each
LITELLM = pytest.mark.skipif(find_spec("litellm") is None, reason="needs LiteLLM: pip install 'cloneproof[litellm]'")
ON_DRAWS = {"reservoir": "reservoir", "reservoir-bars": "bars", "reservoir-index": "index"}  # mechanism to `tuned`
DECIDE = """cases => cases.map(([rule, market, listed, seed, rounds]) => {
    const world = new World(RULES.find(({ python }) => python == rule), market, listed, seed);
    const pages = Array.from({ length: rounds }, () => world.step());
    return [pages, world.earned, lastRound(market.horizon, uniform(substream(seedStream(seed), 2), 0))];
})"""
SEASON = """rounds => cards.map(({ code, worlds: [world] }) => {
    const pages = Array.from({ length: rounds }, () => world.step());
    return [code.textContent, pages, listingsOf(market, ratesOf(market, season.seed), season.seed, settings)];
})"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    file = tmp_path_factory.mktemp("playground") / "playground.html"
    done = run("play", file)
    assert (done.returncode, file.read_text(encoding="utf-8")) == (0, playground())
    return file.as_uri()


@pytest.fixture(scope="module")
def page(browser, address):
    """The page at rest, whose functions can be called."""
    with visit(browser, address) as seen:
        seen.page.evaluate("setPlaying(false)")
        yield seen.page
        assert seen.complaints == []


def parameters(name, rng):
    """Parameters of a mechanism on draws, at random; none for others."""
    draws, rounds = int(rng.integers(1, 7)), int(rng.integers(1, 30))
    given = {
        "reservoir": {"draws": draws, "rounds": rounds, "threshold": int(rng.integers(1, rounds + 1))},
        "reservoir-bars": {
            "draws": draws,
            "bars": round(rng.uniform(0.05, 0.9), 3),
            "stake": round(rng.uniform(0.2, 3), 3),
        },
        "reservoir-index": {"draws": draws, "constant": round(rng.uniform(0.3, 3), 2)},
    }
    return given.get(name, {})


def random_case(name, number, places):
    """A market as the page's rules take it: copies, weights and rates at random."""
    rng = np.random.default_rng([number, places, *name.encode()])
    own = parameters(name, rng)
    if places:
        own.pop("threshold", None)
    most = 5 if own else 3  # arms cost time under the usual bandits
    listed = []
    for agent in range(int(rng.integers(2, most + 1))):
        weighs, arms = bool(own) and rng.random() < 0.5, []
        for item in range(int(rng.integers(1, most - 1))):
            rate = round(rng.beta(1, 2), 3)
            for _ in range(int(rng.choice([1, 1, 2, most]))):
                weight = int(rng.integers(0, 5)) if weighs and arms else 1
                arms.append({"agent": agent, "item": item, "rate": rate, "weight": weight})
        listed.append(arms)
    agents = [{"items": [0] * (1 + arms[-1]["item"])} for arms in listed]
    positions = [1.0, 0.6, 0.4, 0.3][:places]
    tuned = {ON_DRAWS[name]: own} if own else {}
    market = {"agents": agents, "tuned": tuned, "positions": positions, "horizon": 5 * ROUNDS}
    return market, listed, own, int(rng.integers(0, 1 << 40))


class Fates:
    """Rewards as the page has them: the n-th view of an item has one fate, whichever copy is shown."""

    def __init__(self, listed, seed, positions):
        self.arms, self.seed, self.attention = [arm for own in listed for arm in own], seed, positions or [1.0]
        self.views = {}

    def reward(self, number, place=0):
        arm = self.arms[number]
        item = arm["agent"], arm["item"]
        view = self.views[item] = self.views.get(item, -1) + 1
        return float(uniform(substream(0, self.seed, 1, *item), view) < self.attention[place] * arm["rate"])


def session_pages(live, fates, rounds):
    """The arms that a session shows on each page, numbered over all agents."""
    names, firsts = live.registration.names, np.cumsum([0, *live.registration.arms])
    pages = []
    for _ in range(rounds):
        shown = [live.decide()] if live.positions is None else live.decide_slate()
        pages.append([int(firsts[names.index(each.agent)]) + each.arm for each in shown])
        for place, each in enumerate(shown):
            live.reward(each.id, fates.reward(pages[-1][place], place))
    return pages


def differences(page, name, places):
    """Cases in which the page and a session decide or pay differently, or draw another end."""
    cases = [random_case(name, number, places) for number in range(CASES)]
    found = page.evaluate(DECIDE, [[name, market, listed, seed, ROUNDS] for market, listed, _, seed in cases])
    for number, (market, listed, own, seed) in enumerate(cases):
        registered = {f"agent {k}": len(arms) for k, arms in enumerate(listed)}
        weights = {f"agent {k}": [arm["weight"] for arm in arms] for k, arms in enumerate(listed)} if own else None
        made, horizon = cp.mechanism(name, **own), market["horizon"]
        live = cp.session(made, registered, horizon, seed, weights=weights, positions=places or None)
        pages = session_pages(live, Fates(listed, seed, market["positions"]), ROUNDS)
        last = cp.session(made, registered, horizon, seed, ends="at-random").last
        if [pages, list(live.payoff.values()), last] != found[number]:
            yield number


@pytest.mark.parametrize(
    ("name", "places"),
    [(name, 0) for name in ("ucb1", "thompson", "h-thompson", "kl-ucb", *ON_DRAWS)]
    + [(name, 3) for name in ("ucb1", "thompson", "h-thompson", "kl-ucb", "reservoir")],
)
def test_rules_decide_as_sessions_do_with_the_same_seed(page, name, places):
    assert list(differences(page, name, places)) == []


def test_a_rule_that_is_a_little_wrong_is_noticed(page):
    page.evaluate("void (PRIORITIES.right = PRIORITIES.ucb)")
    page.evaluate("void (PRIORITIES.ucb = (...inputs) => PRIORITIES.right(...inputs) + 1e-4 * inputs[2])")
    try:
        assert list(differences(page, "ucb1", 0)) != []
    finally:
        page.evaluate("void (PRIORITIES.ucb = PRIORITIES.right)")


class Tape(random.Random):
    """Python's generator with the numbers of a stream."""

    def __init__(self, stream):
        super().__init__(0)
        self.stream, self.used = stream, 0

    def random(self):
        self.used += 1
        return uniform(self.stream, self.used - 1)


class RouterByHand:
    """LiteLLM's rule where all models have quality tier 2 and one cost."""

    def __init__(self, arms):
        self.cells, self.dice = [(5.0, 5.0)] * arms, random.Random(0)

    def select(self):
        scores = [0.7 * self.dice.betavariate(*cell) + 0.3 * 0.5 for cell in self.cells]
        return scores.index(max(scores))

    def update(self, arm, reward):
        alpha, beta = self.cells[arm]
        if alpha + beta + 1 <= 200:
            self.cells[arm] = alpha + reward, beta + 1 - reward


@pytest.mark.parametrize("made", ["by hand", pytest.param("by its adapter", marks=LITELLM)])
def test_litellms_rule_decides_as_its_adapter_does_with_the_same_tape(page, made):
    cases = [random_case("litellm", number, 0) for number in range(CASES)]
    found = page.evaluate(DECIDE, [[None, market, listed, seed, ROUNDS] for market, listed, _, seed in cases])
    for (market, listed, _, seed), (pages, _, _) in zip(cases, found, strict=True):
        registered = {f"agent {k}": len(arms) for k, arms in enumerate(listed)}
        router = RouterByHand(sum(registered.values()))
        if made == "by its adapter":
            from cloneproof.engines.black_box import View

            router = cp.adapters.litellm_router().factory(View(registered, market["horizon"], seed))
        router.dice, fates, chosen = Tape(substream(0, seed)), Fates(listed, seed, []), []
        for _ in range(ROUNDS):
            chosen.append([router.select()])
            router.update(chosen[-1][0], fates.reward(chosen[-1][0]))
        assert chosen == pages


@pytest.mark.parametrize(
    "settings",
    [
        "preset=bo&copies=5&seed=3&random=on",
        "preset=shop&who=cy&copies=4&spread=0.4&weight=3&seed=1234",
        "preset=bo&who=ana&weight=4&seed=2",
    ],
)
def test_the_calls_on_the_cards_open_sessions_that_decide_as_the_page_does(page, settings):
    page.evaluate("hash => { location.hash = hash; restore(); }", settings)
    seed = int(page.evaluate("settings.seed"))
    for call, pages, listed in page.evaluate(SEASON, 150):
        if "litellm" not in call:
            live = eval(call, {"cp": cp})  # as a reader would paste it
            assert session_pages(live, Fates(listed, seed, page.evaluate("market.positions")), 150) == pages
            assert live.last == page.evaluate("season.last")
            assert ("weights" in call) == ("reservoir" in call and "weight=" in settings)


def test_colours_and_parameters_are_cloneproofs_own(page):
    for python, colour in page.evaluate("RULES.map(({ python, colour }) => [python ?? 'LiteLLM', colour])"):
        assert colour == look(python).colour
    tuned = {"bo": ("reservoir", "reservoir-index"), "shop": ("reservoir",)}
    if LONG:
        tuned |= {"bo": ON_DRAWS, "router": ("reservoir", "reservoir-index")}
    for preset, names in tuned.items():
        given = page.evaluate("preset => ({ ...marketOf({ preset, items: PRESETS[preset].items }) })", preset)
        agents = [
            cp.Agent(
                agent["name"],
                len(agent["items"]),
                cp.Beta(40, 10) if preset == "router" else cp.Discrete(rates, [1 / len(rates)] * len(rates)),
            )
            for agent in given["agents"]
            for rates in agent["items"][:1]
        ]
        for name in names:
            ends = "at-horizon" if name == "reservoir" else "at-random"
            market = cp.Market(agents, given["horizon"], ends=ends, positions=given["positions"] or None)
            assert given["tuned"][ON_DRAWS[name]].items() <= cp.mechanism(name, market=market).parameters.items()


def numbers(page):
    return page.locator("td").all_inner_texts()


def glance(page, settings):
    """The colour, the factor and its error on each card, by its rule, as the page opens."""
    page.evaluate("hash => { location.hash = hash; restore(); }", settings)
    told = page.evaluate(
        "cards.map(card => [card.rule.name, card.article.className, card.gain.innerText, card.error.innerText])"
    )
    return {name: seen for name, *seen in told}


@pytest.mark.parametrize("preset", ["bo", "router", "shop"])
def test_the_first_glance_has_factors_with_narrow_errors_and_colours_by_promise(page, preset):
    seen = glance(page, f"preset={preset}&seed=9")
    for name, (colour, *texts) in seen.items():
        ratio, error = (float(text.strip("\u00d7\u00b1 ")) for text in texts)
        assert error <= ratio / 3
        if name in {"Reservoir", "Bars", "Index"}:
            assert ratio - error <= 1
            assert colour == ("promises" if name == "Reservoir" else "")  # others promise where ends are random
        else:
            assert (ratio - error > 1) == (name != "Two-level Thompson")
            assert colour == "open"
    assert glance(page, f"preset={preset}&random=on").get("Bars", ["promises"])[0] == "promises"
    assert glance(page, f"preset={preset}&spread=0.5")["Reservoir"][0] == ""  # variants are no copies


def test_there_is_no_factor_before_its_error_is_narrow_and_luck_changes_no_colour(page):
    assert {tuple(seen[1:]) for seen in glance(page, "preset=shop&copies=5").values()} == {("\u2013", "")}
    page.evaluate("play(200, Infinity); paint(true)")
    assert set(page.locator(".gain").all_inner_texts()) <= {"\u2013", ""}
    told = """pairs => {
        const card = cards.find(({ rule }) => rule.name === "Reservoir");
        card.past = [0, 0, 0, 0, 0, 0];
        pairs.forEach(pair => remember(card, pair));
        writeNumbers(card);
        return [card.article.className, card.gain.textContent, card.error.textContent];
    }"""
    assert page.evaluate(told, [[400, 100]] * 4) == ["promises", "\u2013", ""]
    assert page.evaluate(told, [[400, 100], [100, 400]] * 4) == ["promises", "\u2013", ""]
    pairs = [[265, 100], [270, 100], [260, 100]] * 4
    error = 2.201 * np.std([a for a, _ in pairs], ddof=1) / np.sqrt(12) / 100  # Student's t with 11 degrees of freedom
    assert page.evaluate(told, pairs) == ["promises", "\u00d72.65", f"\u00b1 {error:.2f}"]


@pytest.mark.parametrize("preset", ["bo", "router", "shop"])
def test_the_seasons_that_it_starts_with_are_its_own(page, preset):
    glance(page, f"preset={preset}")
    again = """names => {
        cards = cards.filter(({ rule }) => !names.length || names.includes(rule.name));
        const before = cards.map(card => card.past);
        for (const card of cards) card.past = [0, 0, 0, 0, 0, 0];
        for (const seasons = playAhead(); !seasons.next().done;);
        return [before, cards.map(card => card.past)];
    }"""
    before, after = page.evaluate(again, [] if LONG else ["Reservoir"])
    assert before == after
    assert before[0][0] == 300


def test_a_person_can_use_it_on_a_phone_without_a_mouse_and_without_motion(browser, address):
    with visit(browser, address, width=390) as seen:
        page = seen.page
        page.wait_for_function("season.round > 20")  # it plays by itself
        assert (seen.complaints, seen.foreign_requests, sticking_out(page)) == ([], [], [])
        page.emulate_media(reduced_motion="reduce", color_scheme="dark")
        page.reload()
        assert not page.evaluate("playing")
        assert page.locator("#play").is_hidden()
        names = page.evaluate(
            """[...form.querySelectorAll("button, input, select, fieldset")]
            .map(one => one.labels?.[0]?.textContent || one.textContent || one.ariaLabel || "")"""
        )
        assert all(name.strip() for name in names)
        reached = set()
        for _ in range(14):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.name || document.activeElement.id"))
            style = page.evaluate(
                "getComputedStyle(document.activeElement.closest('label') ?? document.activeElement).outlineStyle"
            )
            assert style == "solid"
        assert reached >= {"preset", "items", "copies", "spread", "step", "again", "speed", "who", "seed", "random"}
        page.locator("[name=copies]").focus()
        page.keyboard.press("ArrowLeft")
        assert "copies=15" in page.url
        page.locator("[name=speed]").focus()
        page.keyboard.press("ArrowRight")
        assert "speed=10" in page.url
        page.locator("#step").focus()
        for _ in range(10):
            page.keyboard.press("Enter")
        told = r"Season 1, seed 9\. Bo's .*: UCB1 [\d,]+ and \d+, .* Reservoir (\d+) and \1,"
        assert re.match(told, page.inner_text("#summary"))
        assert sticking_out(page) == []
        before = numbers(page)
        page.goto(address + "#preset=shop&seed=5")
        page.keyboard.press("Enter")
        assert numbers(page) != before
        page.goto(address + "#copies=15")
        for _ in range(10):
            page.locator("#step").click()
        assert numbers(page) == before  # the address has all of it
        assert (seen.complaints, seen.foreign_requests) == ([], [])


def test_it_is_one_small_file():
    text = playground()
    assert text.count("\n") <= 1000
    assert len(text.encode()) <= 100_000
    assert not re.search(r"https?://|src=|@import|url\(", text)
