"""Numbers that README shares with other pages, and those of them that are quick to compute."""

import re
import runpy
from importlib.util import find_spec
from pathlib import Path

import pytest

import cloneproof as cp
import reservoir_comparison as study
from support.sizes import LONG

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CHAPTER = (ROOT / "docs/textbook/reservoir.md").read_text(encoding="utf-8")


def table(text, heading):
    """The rows below a row that begins with this heading: the cells by their first one."""
    lines = text[text.index(f"| {heading}") :].splitlines()
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines[: lines.index("")]]
    return rows[0], {row[0]: row[1:] for row in rows[2:]}


def test_what_the_proof_costs_on_pages_is_what_the_other_page_says():
    """And the best of what is proven there comes first."""
    (sentence,) = re.findall(r"^On pages the proof costs more:.*?which pays", README, flags=re.MULTILINE | re.DOTALL)
    _, rows = table((ROOT / "docs/which_mechanism.md").read_text(encoding="utf-8"), "16 x 3, Beta(3, 97), 30,000 pages")
    lost = {name.partition(":")[0].strip("`"): float(cells[0].partition(" ")[0]) for name, cells in rows.items()}
    said = re.findall(r"`([\w-]+)`(?: loses)?\s+([\d.]+) %", sentence)
    assert {name: float(number) for name, number in said} == {name: lost[name] for name, _ in said}
    proven = {name.strip("`"): lost[name.strip("`")] for name, cells in rows.items() if cells[1] == "0, proven"}
    assert said[0][0] == min(proven, key=proven.get)
    assert f"Thompson sampling {lost['Thompson over listings']} %" in " ".join(sentence.split())


def naming(market):
    """The platform's regret if one agent names its best item, and without; and if all do."""
    made = cp.mechanism("reservoir", market=market)
    told = cp.audit(market, made, agent=market.agents[0].name, also=("informed",)).informed
    right = next(each for each in told.naming if each.accuracy == 1)
    return f"{right.regret_if_one.value:.0f} {told.regret.value:.0f}", f"{right.regret_if_all.value:.0f}"


@pytest.mark.parametrize("case", study.MARKETS if LONG else study.MARKETS[1:2], ids=lambda case: case[0])
def test_what_the_theorem_does_not_cover_gains_what_the_pages_say(case):
    words, agents, values, horizon = case
    informed, _, two, three = (f"+{100 * gain:.0f} %" for gain in study.gains(study.market(agents, values, horizon)))
    shops, rows = table(README, "under `reservoir`")
    column = [k for k, name in enumerate(shops[1:]) if name.startswith(f"{agents} shops") and values[0] < 0.1]
    for k in column if agents != 10 else []:
        named = naming(study.market(agents, values, horizon))
        cells = [re.sub(r" clicks| instead of", "", row[k]) for row in rows.values()]
        assert cells == [informed, *named, two]
    _, gains = table(CHAPTER, "agents of three originals")
    for name, row in gains.items():
        if name == f"{agents}, " + words.split(", ")[1]:
            assert row[-2:] == [informed, two]
            assert re.search(rf"\b{three[1:-2]}\b", re.search(r"gain more, (.*?) %", CHAPTER)[1])


def test_the_story_of_the_router_is_that_of_its_example(capsys):
    """Figures of LiteLLM are what the example printed with it, and are played again where LiteLLM is installed."""
    example = runpy.run_path(str(ROOT / "examples/can_my_llm_router_be_gamed.py"))
    told = example["__doc__"].split("minutes:\n\n")[1]
    story = README[README.index("**An LLM router**") :].split("\n\n")[0]
    figures = re.findall(r"\d+ ± \d+ %|\d\.\d %|\b106\b", story)
    assert len(figures) == 4
    assert all(figure in told for figure in figures)
    study = runpy.run_path(str(ROOT / "studies/router.py"))
    value, error = map(int, re.search(r"LiteLLM's (\d+) ± (\d+), if nobody", story).groups())
    lost = study["missed"](400)
    assert abs(lost.mean() - value) < error + 5 * lost.std() / 400**0.5
    assert f"LiteLLM's router: {value} ± {error}" in (ROOT / "docs/guides/router.md").read_text(encoding="utf-8")
    market, names = example["MARKET"], [agent.name for agent in example["MARKET"].agents]
    alike = cp.Market([cp.Agent(name, 1, example["UNKNOWN"]) for name in names], 4000)
    made = cp.mechanism("reservoir", market=alike)
    assert f"{2 * cp.evaluate(alike, made).regret.value:.0f} under reservoir" in told
    for name, part in market.by_segment.items():
        once, often = (cp.evaluate(part, made, {"ana": (n,)}).payoff["ana"] for n in (1, 8))
        said = example["shares"](part, once, often, digits=1)
        assert f"and {said} under a reservoir for each type" in told[told.index(name) :].splitlines()[1]
    if LONG and find_spec("litellm") is not None:
        example["main"]()
        assert capsys.readouterr().out.split() == told.split()


def test_costs_are_the_same_on_all_pages():
    """Each cost in README is the number of the first market in the table of docs/which_mechanism.md."""
    text = (ROOT / "docs/which_mechanism.md").read_text(encoding="utf-8")
    _, rows = table(text, "mechanism | rates Beta(2, 60)")
    _, costs = table(README, "| `reservoir` | `reservoir-contest`")
    shown = {number for row in rows.values() for cell in row for number in re.findall(r"[\d,]+(?: ± \d+)?", cell)}
    found = [number for row in costs.values() for cell in row for number in re.findall(r"[\d,]+(?: ± \d+)?", cell)]
    assert len(found) == 8
    assert set(found) <= shown
