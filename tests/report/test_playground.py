"""The page that moves, in a real browser: its small bandits learn and pay, and people can use it."""

import re

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.report.page import playground
from cloneproof.report.style import look
from support.browser import sticking_out, visit
from support.command import run
from support.sizes import LONG

ON_DRAWS = {"reservoir": "reservoir", "reservoir-bars": "bars", "reservoir-index": "index"}  # mechanism to `tuned`
TWO_ITEMS = """([name, places, seeds]) => {
    const rule = RULES.find(({ python }) => python === name), positions = [1, 0.6].slice(0, places);
    const market = { agents: [1, 2, 3].map(() => ({ items: [[0]] })), positions, tuned: PRESETS.bo.tuned };
    const listed = [0.2, 0.8, 0.2].map((rate, agent) => [{ agent, item: 0, rate, weight: 1 }]);
    return seeds.map(seed => {
        const world = new World(rule, market, listed, seed), before = [];
        for (let page = 0; page < 4000; page++) before.push(world.step());
        return [world.views, world.earned, before.every(shown => new Set(shown).size === shown.length)];
    });
}"""


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


@pytest.mark.parametrize(
    ("name", "places"),
    [(name, 1) for name in ("ucb1", "thompson", "h-thompson", "kl-ucb", "litellm", *ON_DRAWS)]
    + [(name, 2) for name in ("ucb1", "thompson", "h-thompson", "kl-ucb", "reservoir")],
)
def test_each_bandit_finds_the_better_of_three_items(page, name, places):
    """And pays what it shows: its views are clicks with the rates of the items, and no page shows one twice."""
    views, earned = np.zeros(3), np.zeros(3)
    for shown, paid, distinct in page.evaluate(TWO_ITEMS, [name, places, list(range(5))]):
        assert sum(shown) == 4000 * places
        assert distinct
        views, earned = views + shown, earned + paid
    assert views[1] > 0.7 * 20_000
    rates = np.array([0.2, 0.8, 0.2])
    if places == 1:
        assert np.all(np.abs(earned - rates * views) < 5.5 * np.sqrt(rates * (1 - rates) * views) + 5)
    else:  # a view in the second place is worth less
        assert earned.sum() < 0.95 * (rates * views).sum()


def test_under_the_reservoir_no_list_of_copies_of_one_item_changes_anything(page):
    """Its draws hold the same item; under the usual bandits copies bring views."""
    same = """name => { const seed = 5, rates = ratesOf(market, seed);
        return [16, 1].map(copies => {
            const listed = listingsOf(market, rates, seed, { copies, spread: 0, weight: 1 });
            const world = new World(RULES.find(({ python }) => python === name), market, listed, seed);
            for (let round = 0; round < 4000; round++) world.step();
            return world.earned;
        }); }"""
    glance(page, "preset=bo")
    for name, equal in (("reservoir", True), ("reservoir-bars", True), ("reservoir-index", True), ("ucb1", False)):
        with_copies, without = page.evaluate(same, name)
        assert (with_copies == without) == equal


def test_the_page_claims_no_equal_bits(page):
    assert "small bandits of this page's own" in page.locator("footer").inner_text()
    for code in page.locator("code").all_inner_texts():
        assert "seed" not in code
        if "litellm" not in code and code:
            assert eval(code, {"cp": cp}).horizon == page.evaluate("market.horizon")  # as a reader would paste it


def test_colours_and_parameters_are_cloneproofs_own(page):
    for python, colour in page.evaluate("RULES.map(({ python, colour }) => [python, colour])"):
        assert colour == look({"litellm": "LiteLLM"}.get(python, python)).colour
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
    assert before[0][0] == page.evaluate("market.ahead")


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
