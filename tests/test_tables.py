"""Results as data, tables and HTML: the same numbers in every form, and text that can be pasted."""

import json
import sys
import xml.etree.ElementTree as ET

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cloneproof as cp
from cloneproof.report.words import scope_sentences

MARKET = cp.Market(
    [cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5])), cp.Agent("b_o & <i>", 1, cp.Point(0.6))], horizon=400
)
MECHANISM = cp.mechanism("h-etc-r", agent_rounds=24, arm_rounds=12)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    grid = {"market": MARKET, "mechanism": MECHANISM, "copies": [{}, {"ana": (2, 1)}]}
    return {
        "audit": cp.audit(MARKET, MECHANISM, agent="ana", search=cp.Search(copies=2)),
        "any opponents": cp.audit(MARKET, MECHANISM, agent="ana", search=cp.Search(copies=2), opponents="any"),
        "evaluation": cp.evaluate(MARKET, MECHANISM),
        "one run": cp.evaluate(MARKET, MECHANISM, engine="runs", search=cp.Search(runs=1)),
        "gain": cp.gain(MARKET, MECHANISM, "ana", (2, 1), search=cp.Search(runs=100)),
        "sweep": cp.sweep(grid, tmp_path_factory.mktemp("sweep") / "points", workers=1),
    }


@pytest.fixture(scope="module")
def shown(results):
    return {name: result._repr_html_() for name, result in results.items() if name != "gain"}


def test_every_result_is_json(results):
    for name, result in results.items():
        assert json.dumps(result.to_dict(), allow_nan=False), name
    data = results["audit"].to_dict()
    assert list(data) == [
        "verdict", "state", "tried_at_most", "about_tried", "scope", "tolerance", "mechanism", "worst", "tried",
        "also", "informed", "not_computed", "notes",
        "interrupted", "gain_at_most",
    ]  # fmt: skip
    assert list(data["worst"]) == [
        "agent", "copies", "horizon", "honest", "copied", "gain", "relative_gain", "all_copies",
    ]  # fmt: skip
    assert data["worst"]["gain"]["value"] == results["audit"].worst.gain.value


def test_estimates_and_evaluations_come_back_as_they_were(results):
    unbounded = cp.results.Estimate(1.0, float("inf"), "confidence", "one run")
    assert cp.results.Estimate.from_dict(unbounded.to_dict()) == unbounded
    evaluation = results["evaluation"]
    assert cp.results.Evaluation.from_dict(json.loads(json.dumps(evaluation.to_dict()))) == evaluation


def test_frames_have_the_numbers(results):
    frame = results["audit"].to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["gain"]) == [witness.gain.value for witness in results["audit"].tried]
    assert list(results["evaluation"].to_frame()["quantity"]) == ["payoff", "payoff", "regret"]
    assert results["sweep"].to_frame()["value"].tolist() == results["sweep"]["value"]


def test_without_pandas_there_is_a_sentence(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(cp.errors.CloneproofError, match=r"expected pandas .* got .*pip install pandas"):
        results["audit"].to_frame()


@pytest.mark.parametrize("without", [(), ("pyarrow",)], ids=["by pyarrow", "by polars"])
def test_every_reader_of_arrow_gets_the_columns(results, monkeypatch, without):
    for package in without:
        monkeypatch.setitem(sys.modules, package, None)
    mixed = cp.results.Evaluation(
        {"ana": cp.results.Estimate(2, 0.5, "exact", "by hand")},
        cp.results.Estimate(1.5, 0.0, "exact", "by hand"),
        "tree",
    )
    for table in (results["audit"], results["evaluation"], results["sweep"], mixed):
        columns = {name: [list(each) if isinstance(each, tuple) else each for each in column]
                   for name, column in table.to_columns().items()}  # fmt: skip
        assert pl.DataFrame(table).to_dict(as_series=False) == columns
        if not without:
            assert pa.table(table).to_pydict() == columns
            assert list(pd.DataFrame.from_arrow(table)) == list(columns)


def test_without_arrow_there_is_a_sentence(results, monkeypatch):
    for package in ("pyarrow", "polars"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(cp.errors.CloneproofError, match=r"expected pyarrow or polars .* got .*pip install pyarrow"):
        results["audit"].__arrow_c_stream__()


def test_markdown_and_latex_escape_what_they_must(results):
    text = results["evaluation"].to_markdown(["agent", "value"], digits=3)
    assert text.splitlines()[:2] == ["| agent | value |", "| --- | ---: |"]
    lines = results["evaluation"].to_latex(["agent", "kind", "value"]).splitlines()
    assert lines[:2] == [r"\begin{tabular}{llr}", r"\toprule"]
    assert lines[-1] == r"\end{tabular}"
    assert any(r"b\_o \& <i>" in line for line in lines)
    table = cp.results.SweepTable({"a|b": ["x\ny", None], "n": [1, 2.5]})
    assert table.to_markdown() == "| a\\|b | n |\n| --- | ---: |\n| x y | 1 |\n|  | 2.5 |\n"


def test_notebooks_show_something_well_formed(results, shown):
    for name, html in shown.items():
        ET.fromstring(html)
        assert "<i>" not in html, name
    for name in ("audit", "any opponents"):
        assert "<svg" in shown[name]
        assert f'class="title {results[name].verdict}"' in shown[name]
        assert next(iter(scope_sentences(results[name].scope)))[:20] in shown[name]
    assert "b_o &amp; &lt;i&gt;" in shown["evaluation"]


def test_two_figures_on_one_page_do_not_share_ids(results, shown):
    def ids(html):
        return {node.get("id") for node in ET.fromstring(html).iter() if node.get("id")}

    first, second = map(ids, (shown["audit"], results["audit"]._repr_html_()))
    assert first
    assert not first & second
