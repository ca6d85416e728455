"""Findings have names that stay, and a person can accept them; files beside the text."""

import csv
import json
import random
from dataclasses import dataclass, replace

import pytest

import cloneproof as cp
from cloneproof._lib.findings import NamedFinding, WithFindings, read_known
from cloneproof.cli.options import UNANSWERED
from cloneproof.cli.output import code_with_known
from support.command import run

SHOP = [("ana", "Stone mug"), ("ana", "NEW: stone mug"), ("bo", "Copper kettle"), ("bo", "Copper kettle - sale"),
        ("cy", "Linen notebook")]  # fmt: skip
TASKS = {f"task {t}": [(7 * k * t + k * k) % 97 for k in range(12)] for t in range(1, 9)}


def items(rows):
    return cp.same_items({"shop": [shop for shop, _ in rows], "title": [title for _, title in rows]}, owner="shop")


def ids(result):
    return {one.id for one in result.named}


def known(folder, *names):
    file = folder / "known.toml"
    file.write_text("".join(f'[{name}]\nreason = "two sizes"\ndate = 2026-03-02\n' for name in names))
    return file


def test_an_id_stays_if_rows_come_in_another_order_or_more_of_them_and_changes_if_an_arm_joins():
    before, mixed = ids(items(SHOP)), random.Random(3).sample(SHOP, len(SHOP))
    assert len(before) == 2
    assert ids(items([*mixed, ("di", "Walnut side table")])) == before
    joined = ids(items([*SHOP, ("ana", "stone mug!")]))
    assert len(joined & before) == 1
    assert len(joined) == 2


def test_kinds_and_arms_have_different_names_and_places_of_names_do_not_count():
    named = [("item", (("a", "b"), ("c", "d"))), ("models", (("a", "b"), ("c", "d"))),
             ("item", (("a", "bc"), ("", "d"))), ("item", ("a", "b")), ("item", ("ab",)), ("item", (("a", "b"),)),
             ("item", ('a", "b',))]  # fmt: skip
    assert len({NamedFinding(*one).id for one in named}) == len(named)
    assert NamedFinding("item", ("b", "a")).id == NamedFinding("item", ("a", "b")).id
    assert [len(NamedFinding("item", (word,)).id) for word in ("", "ü", "x" * 10**5)] == [10] * 3


def test_a_log_names_what_looks_like_one_item_and_says_what_is_new(tmp_path):
    rows = [(*SHOP[k % len(SHOP)], f"L{k % len(SHOP)}", int(k % 7 == 0)) for k in range(200)]

    def log(name, rows):
        with (tmp_path / name).open("w", newline="") as file:
            csv.writer(file).writerows([("agent", "title", "arm", "click"), *rows])
        return ["log", tmp_path / name, "--same", "title", "--seconds", "2"]

    first = log("clicks.csv", rows)
    out = run(*first, "--html", tmp_path / "log.html")
    data = json.loads(run(*first, "--json").stdout)
    found = {one["id"]: one["about"] for one in data["findings"] if one["kind"] == "item"}
    assert sorted(found.values()) == [[["ana", "L0"], ["ana", "L1"]], [["bo", "L2"], ["bo", "L3"]]]
    page = (tmp_path / "log.html").read_text()
    assert all(name in out.stdout and name in page for name in found)
    later = log("later.csv", [*random.Random(1).sample(rows, 200), *rows[:50]])
    answer = run(*later, "--known", known(tmp_path, *found))
    assert (answer.returncode in (0, UNANSWERED), answer.stdout.count(", known")) == (True, 2)  # nothing is new
    one, other = found
    answer = run(*later, "--known", known(tmp_path, one, "0123456789"))
    assert answer.returncode == 1
    assert f"New. {other}." in answer.stdout
    assert "Not found any more. 0123456789." in answer.stdout
    rows.append(("ana", "Stone mug - sale", "L9", 1))
    assert run(*log("more.csv", rows), "--known", known(tmp_path, *found)).returncode == 1


def test_the_reason_and_the_date_are_shown_and_written(tmp_path):
    with (tmp_path / "items.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("shop", "title"), *SHOP])
    command = ["same", tmp_path / "items.csv", "--owner", "shop"]
    assert run(*command).returncode == 0
    first, second = (one.id for one in items(SHOP).named)
    assert run(*command, "--known", known(tmp_path)).returncode == 1
    assert run(*command, "--known", known(tmp_path, first)).returncode == 1
    page = tmp_path / "page.html"
    answer = run(*command, "--known", known(tmp_path, first, second), "--html", page, "--details")
    assert answer.returncode == 0
    assert f"{first}  2026-03-02  two sizes" in answer.stdout
    assert "two sizes" in (tmp_path / "page.html").read_text()
    data = json.loads(run(*command, "--known", known(tmp_path, first), "--json").stdout)
    assert [one["known"] for one in data["findings"]] == [{"reason": "two sizes", "date": "2026-03-02"}, None]


def test_models_that_look_like_one_can_be_accepted(tmp_path):
    table = {"model": [f"m{k}" for k in range(12)], **{name: list(scores) for name, scores in TASKS.items()}}
    for task in list(TASKS)[1:]:
        table[task][11] = table[task][4]
    with (tmp_path / "scores.csv").open("w", newline="") as file:
        csv.writer(file).writerows([table, *zip(*table.values(), strict=True)])
    (name,) = ids(cp.boards.copied_scores(table))
    for order in (1, -1):
        shuffled = {key: values[::order] for key, values in table.items()}
        assert ids(cp.boards.copied_scores(shuffled)) == {name}
    command = ["board", tmp_path / "scores.csv"]
    assert run(*command).returncode == 1
    assert name in run(*command, "--details").stdout
    assert run(*command, "--known", known(tmp_path)).returncode == 1
    assert run(*command, "--known", known(tmp_path, name)).returncode == 0


def test_a_board_names_its_rule_and_its_near_equal_models():
    battles = cp.boards.read_board(
        {"model_a": ["x 1", "x 1", "x 2", "y 1"] * 30, "model_b": ["y 1", "z 1", "z 1", "x 2"] * 30,
         "winner": (["model_a", "model_b", "model_a", "model_b", "tie"] * 24)}, owners="first-word",
    )  # fmt: skip
    study = cp.boards.study_board(battles, recommend=False)
    kinds = [one.kind for one in study.named]
    assert (study.verdict == "exploitable") == ("rule" in kinds)
    assert kinds.count("near-equal") == sum(row.ranks.low > 0 for row in study.earned)
    accepted = study.accepting(dict.fromkeys(ids(study)))
    assert accepted.new == ()
    other = replace(study, listing="cap(3)", known={})
    assert [one.kind for one in other.named if one not in study.named] == (["rule"] if "rule" in kinds else [])


@dataclass(frozen=True)
class Found(WithFindings):
    names: tuple[str, ...]
    left: tuple[str, ...] = ()

    @property
    def named(self):
        return tuple(NamedFinding("item", (name,)) for name in self.names)


@pytest.mark.parametrize("code", [0, 1, UNANSWERED, 130])
def test_exit_codes_count_new_findings_only(code):
    found = Found(("a", "b"))
    both, one = (dict.fromkeys(one.id for one in found.named[:n]) for n in (2, 1))
    assert code_with_known(found, code) == code
    assert code_with_known(found.accepting(one), code) == (130 if code == 130 else 1)
    assert code_with_known(found.accepting(both), code) == (0 if code == 1 else code)
    assert code_with_known(replace(found, left=("a question",)).accepting(both), 1) == UNANSWERED
    assert code_with_known(Found(()).accepting({}), code) == (0 if code == 1 else code)


def test_no_file_knows_nothing_and_a_file_is_read(tmp_path):
    assert read_known(None) is None
    (name, why), = read_known(known(tmp_path, "3f9a2c1b07")).items()  # fmt: skip
    assert (name, why.reason, f"{why.date}") == ("3f9a2c1b07", "two sizes", "2026-03-02")
