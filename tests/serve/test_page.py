"""The page in a real browser: by keyboard, on a desk and on a phone; what it shows is what the API says."""

import json
import math
from typing import NamedTuple

import httpx
import numpy as np
import pytest

from cloneproof.serve import calls
from cloneproof.serve.client import Client
from cloneproof.serve.messages import Progress
from support.browser import shown, sticking_out, visit
from support.service import in_thread, start_market

ARMS = {"ana": 2, "bo": 1, "mallory": 3}
TERMS = {"horizon": 400, "parameters": {"agent_rounds": 12, "arm_rounds": 4}}


class Served(NamedTuple):
    address: str
    auditor: str
    agent: str
    phase: str
    progress: Progress


@pytest.fixture(scope="module")
def served():
    """A service with a running market: its address, an auditor's and an agent's key, the last phase, how it stands."""
    with in_thread() as (address, key), Client(address, key) as api:
        start_market(api, ARMS, **TERMS)
        made = api.send(calls.decide_batch("feed", [f"{number}" for number in range(30)])).results
        api.send(calls.reward_batch("feed", [(f"{one.decision}", one, one.decision % 2) for one in made[:-1]]))
        keys = api.send(calls.create_key("auditor")).key, api.send(calls.create_key("agent", "ana")).key
        yield Served(f"{address}/", *keys, made[-1].phase, api.send(calls.progress("feed")))


def enter(page, key):
    """As a person without a mouse: the field by Tab, the key, Enter."""
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "key"
    page.keyboard.type(key)
    page.keyboard.press("Enter")


@pytest.mark.parametrize("width", [1200, 400])
def test_it_shows_the_market(browser, served, width):
    progress = served.progress
    with visit(browser, served.address, width=width) as seen:
        page = seen.page
        enter(page, served.auditor)
        page.wait_for_selector("#scores svg", timeout=60_000)
        assert page.text_content("#name") == "feed"
        assert page.text_content("#phase") == served.phase  # though the last lines are all rewards
        assert page.text_content("#rounds") == "30"
        assert "rewards: 1 awaited, 0 never came in time, 0 came late" in page.text_content("#rounds-words")
        assert page.locator("#scores svg circle").count() == sum(
            bool(arm.rewards) for agent in progress.agents for arm in agent.arms
        ) + len(progress.agents)
        assert page.locator("#traffic svg rect").count() == len(ARMS)
        assert page.locator("#balances svg rect").count() == len(ARMS)
        paid = {agent.agent: agent.balance for agent in progress.agents}
        assert page.locator("#balances svg text").all_text_contents()[1::2] == [
            f"{value / 1e6:.2f}".rstrip("0").rstrip(".") for value in sorted(paid.values(), reverse=True)
        ]
        assert 0 < page.locator("#ledger tbody tr").count() <= 12
        assert page.text_content("#head") == progress.head
        assert shown(page, "#entry") == 0
        assert not sticking_out(page)
        assert not seen.complaints
        assert not seen.foreign_requests
        secret = served.auditor.split("_", 2)[2]
        assert not any(secret in url for url in [page.url, *seen.requests])
        kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, history.state])")
        assert secret not in kept + page.content() + page.input_value("#key")


def test_it_shows_the_largest_segments(browser):
    names = [f"query-{number:02}" for number in range(25)]
    with in_thread() as (address, key), Client(address, key) as api:
        terms = {"mechanism": "reservoir-index", "parameters": {"draws": 2, "constant": 2.0}, "ends": "at-random"}
        start_market(api, ARMS, horizon=250, segments=dict.fromkeys(names, 0.04), **terms)
        asked = [f"{number}" for number in range(500)]
        api.send(calls.decide_batch("feed", asked, [names[number % 25] for number in range(500)]))
        segments = api.send(calls.progress("feed")).segments
        with visit(browser, f"{address}/", width=400) as seen:
            enter(seen.page, key)
            seen.page.wait_for_selector("#segments svg", timeout=60_000)
            told = seen.page.locator("#segments svg > text").all_text_contents()
            assert told[::2] == [2 * name for name in names[:20]]  # each with its tooltip
            assert told[1::2] == [f"{one.decisions}{', ended' * one.ended}" for one in segments[:20]]
            assert any(one.ended for one in segments[:20])
            rest = sum(one.decisions for one in segments[20:])
            words = f"The 5 smallest segments are not shown; they have {rest} decisions."
            assert words in seen.page.text_content("#segments")
            assert not sticking_out(seen.page)
            assert not seen.complaints


@pytest.mark.parametrize("width", [1200, 400])
def test_it_shows_what_each_place_has(browser, width):
    with in_thread() as (address, key), Client(address, key) as api:
        start_market(api, ARMS, mechanism="reservoir", parameters={"rounds": 2, "draws": 2}, positions=4, horizon=50)
        made = api.send(calls.slate_batch("feed", ["a", "b"])).results[-1]
        with visit(browser, f"{address}/", width=width) as seen:
            enter(seen.page, key)
            seen.page.wait_for_selector("#places tbody tr", timeout=60_000)
            cells = seen.page.locator("#places tbody tr > *").all_text_contents()
            rows = [[f"{one.place}", one.agent, one.arm, one.phase] for one in made.decisions]
            assert cells == [text for row in [*rows, ["4", "(empty)", "", ""]] for text in row]
            assert seen.page.text_content("#rounds") == "2"
            assert "horizon 50 pages" in seen.page.text_content("#sentence")
            assert not sticking_out(seen.page)
            assert not seen.complaints


def test_equal_lines_of_the_ledger_are_one_row(browser, served):
    line = {"kind": "reward", "agent": "ana", "arm": "a", "value": 1}
    entries = [{"kind": "started"}, {"kind": "started"}, line, {**line, "value": 0, "n": 4}, {**line, "arm": "b"}, line]
    with visit(browser, served.address) as seen:
        asked = f"import('/records.js').then((page) => page.fold({json.dumps(entries)}).map((one) => one.length))"
        assert seen.page.evaluate(asked) == [1, 1, 2, 1, 1]


def test_other_keys_get_a_sentence(browser, served):
    with visit(browser, served.address) as seen:
        for key, words in (("cp_0_wrong", "valid key"), (served.agent, "role agent may not")):
            seen.page.fill("#key", key)
            seen.page.keyboard.press("Enter")
            seen.page.wait_for_selector(f"#alarm:has-text('{words}')", timeout=60_000)
            assert shown(seen.page, "#entry") == 1
            assert shown(seen.page, "#scores svg") == 0


def test_a_foreign_script_does_not_run(browser, served):
    """The policy is strict: planted in the page, neither a script nor a style gets through."""
    with visit(browser, served.address) as seen:
        seen.page.evaluate(
            """() => {
                const script = document.createElement("script");
                script.textContent = "window.ran = true";
                document.head.append(script);
                document.body.insertAdjacentHTML("beforeend", "<p id=planted style='position: fixed'>x</p>");
            }"""
        )
        assert seen.page.evaluate("window.ran") is None
        assert seen.page.evaluate("getComputedStyle(document.getElementById('planted')).position") == "static"
        assert len(seen.complaints) == 2
        assert all("Content Security Policy" in one for one in seen.complaints)


def formula(last, spread, alpha=0.05):
    """Howard, Ramdas, McAuliffe and Sekhon (2021), eq. 1.2, for 1, 2, .., last rewards; ln ln is 0 where it is less."""
    count = np.arange(1, last + 1)
    iterated = np.log(np.maximum(1.0, np.log(2.0 * count)))
    return 1.7 * spread * np.sqrt((iterated + 0.72 * math.log(10.4 / alpha)) / count)


LAST = 100_000


@pytest.fixture(scope="module")
def half(browser, served):
    """The half-widths that the page itself computes, of rewards in [0, 1], after 1, 2, .., LAST of them."""
    with visit(browser, served.address) as seen:
        asked = f"(page) => JSON.stringify(Array.from({{length: {LAST}}}, (_, k) => page.halfWidth(k + 1, 0.5)))"
        return np.array(json.loads(seen.page.evaluate(f"import('/page.js').then({asked})")))


def test_intervals_are_the_confidence_sequence(half):
    np.testing.assert_allclose(half, formula(LAST, 0.5), rtol=1e-12)


def test_its_files_have_strict_headers(served):
    for path in ("", "page.js", "page.css"):
        reply = httpx.get(served.address + path)
        assert reply.status_code == 200
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
    assert httpx.post(served.address).status_code == 405
    assert httpx.get(served.address + "page.py").status_code == 404
