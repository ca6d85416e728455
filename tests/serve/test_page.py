"""The page in a real browser: by keyboard, on a desk and on a phone; what it shows is what the API says."""

import math
from typing import NamedTuple

import httpx
import pytest

from browser import shown, sticking_out, visit
from cloneproof.serve import calls
from cloneproof.serve.client import Client
from cloneproof.serve.messages import Progress
from serve_support import in_thread, spec

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
        api.send(calls.create_market(spec(**TERMS)))
        for agent, arms in ARMS.items():
            api.send(calls.register_agent("feed", agent))
            for arm in range(arms):
                api.send(calls.register_arm("feed", agent, f"{agent}-{arm}"))
        api.send(calls.start("feed"))
        made = api.send(calls.decide_batch("feed", [f"{number}" for number in range(30)])).results
        api.send(calls.reward_batch("feed", [(f"{one.decision}", one.decision, one.decision % 2) for one in made[:-1]]))
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
        assert "1 rewards awaited" in page.text_content("#rounds-words")
        assert page.locator("#scores svg circle").count() == sum(
            bool(arm.rewards) for agent in progress.agents for arm in agent.arms
        ) + len(progress.agents)
        assert page.locator("#traffic svg rect").count() == len(ARMS)
        assert page.locator("#ledger tbody tr").count() == 12
        assert page.text_content("#head") == progress.head
        assert shown(page, "#entry") == 0
        assert not sticking_out(page)
        assert not seen.complaints
        assert not seen.foreign_requests
        secret = served.auditor.split("_", 2)[2]
        assert not any(secret in url for url in [page.url, *seen.requests])
        kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, history.state])")
        assert secret not in kept + page.content() + page.input_value("#key")


def test_a_copys_worth_by_keyboard(browser, served):
    with visit(browser, served.address, width=400) as seen:
        page = seen.page
        enter(page, served.auditor)
        page.wait_for_selector("#scores svg", timeout=60_000)
        page.focus("#agents")
        page.keyboard.press("Home")
        for _ in range(2):
            page.keyboard.press("ArrowRight")
        assert page.text_content("#agents + output") == "3"
        page.focus("#ask")
        with page.expect_response("**/what-if", timeout=120_000) as reply:
            page.keyboard.press("Enter")
        said = reply.value.json()
        page.wait_for_selector("#answer h3", timeout=60_000)
        assert page.text_content("#answer h3").lower() == said["verdict"]
        assert said["scope"] in page.text_content("#answer")
        assert len(said["priors"]) == 3
        assert page.locator("#answer svg rect").count() > 0
        assert not sticking_out(page)
        page.focus("input[value=belief]")
        page.keyboard.press("ArrowRight")
        assert shown(page, "#fitted") == 1
        assert shown(page, "#belief") == 0
        with page.expect_response("**/what-if", timeout=120_000) as reply:
            page.keyboard.press("Enter")
        page.wait_for_selector("#answer table", timeout=60_000)
        pairs = reply.value.json()["pairs"]
        assert {pair["agent"] for pair in pairs} == {"ana", "mallory"}
        assert pairs[0]["arms"][0] in page.text_content("#answer")
        assert not sticking_out(page)
        assert not seen.complaints


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


def test_intervals_are_the_confidence_sequence(browser, served):
    with visit(browser, served.address) as seen:
        for rewards in (1, 7, 1000):
            got = seen.page.evaluate(f"import('/page.js').then((page) => page.halfWidth({rewards}, 0.5))")
            loglog = max(0.0, math.log(max(1.0, math.log(2 * rewards))))
            assert got == pytest.approx(0.85 * math.sqrt((loglog + 0.72 * math.log(10.4 / 0.05)) / rewards))


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
