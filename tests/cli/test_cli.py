"""The command line as a user meets it: exit codes, data on stdout and nothing else; real processes where it matters."""

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

import cloneproof as cp
from cloneproof._lib.sections import Section, Table
from cloneproof.cli import output
from cloneproof.cli.app import app
from cloneproof.cli.output import print_sections
from cloneproof.mechanisms import CATALOGUE
from cloneproof.sweeps.table import SweepTable
from support.clocks import ticking
from support.command import everything, run

CREATORS = Path(__file__).parents[2] / "examples" / "creators.toml"


def test_evaluate_prints_estimates_with_errors():
    done = run("evaluate", CREATORS, "--mechanism", "h-etc-r", "--copies", "ana=2,1", "--details")
    assert done.returncode == 0
    assert all(word in done.stdout for word in ("ana", "± error", "exact", "closed form", "regret"))
    assert "cannot explore" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_evaluate_as_json_is_the_library():
    done = run("evaluate", CREATORS, "-m", "h-etc-r", "--copies", "ana=2,1", "--json")
    market = cp.load_market(CREATORS)
    found = cp.evaluate(market, cp.mechanism("h-etc-r", market=market), {"ana": (2, 1)})
    (row,) = json.loads(done.stdout)["horizons"]
    assert row["payoff"]["ana"] == found.payoff["ana"].to_dict()
    assert row["payoff"]["ana"]["kind"] == "exact"
    assert row["engine"] == "law"


def test_evaluate_at_every_horizon(tmp_path):
    path = tmp_path / "one.toml"
    path.write_text(
        'horizon = 9\n[[agents]]\nname = "ana"\noriginals = 2\nprior = { values = [0, 1], weights = [0.5, 0.5] }\n'
    )
    done = run("evaluate", path, "-m", "ucb1", "--copies", "ana=2,1", "--horizons", "1:20", "--json")
    rows = {row["horizon"]: row["payoff"]["ana"]["value"] for row in json.loads(done.stdout)["horizons"]}
    assert list(rows) == list(range(1, 21))
    assert rows[7] == pytest.approx(4.5)
    shown = run("evaluate", path, "-m", "ucb1", "--horizons", "5:8")
    assert [line.split()[0] for line in shown.stdout.splitlines() if line.strip()[:1].isdigit()] == ["5", "6", "7", "8"]


def test_evaluate_falls_back_to_sampling_and_says_why():
    done = run("evaluate", CREATORS, "-m", "thompson", "--runs", 2, "--details")
    assert done.returncode == 0
    assert "2 runs, seed 0" in done.stdout
    assert "runs" in done.stdout
    assert "The tree expects" in done.stdout


def test_mechanisms_lists_all_of_them_with_claims():
    done = run("mechanisms")
    assert done.returncode == 0
    assert all(name in done.stdout for name in CATALOGUE)
    assert "refuted" in done.stdout
    assert [row["mechanism"] for row in json.loads(run("mechanisms", "--json").stdout)] == list(CATALOGUE)


def test_mechanisms_for_a_market_derives_parameters():
    rows = {row["mechanism"]: row for row in json.loads(run("mechanisms", CREATORS, "--json").stdout)}
    expected = cp.mechanism("h-etc-r", market=cp.load_market(CREATORS)).parameters
    assert rows["h-etc-r"]["parameters"] == dict(expected)


ODD = 'horizon = 5\n[[agents]]\nname = "{name}"\noriginals = 2\nprior = {{ values = {values}, weights = [0.5, 0.5] }}\n'


def test_odd_names_are_printed_as_they_are(tmp_path):
    path = tmp_path / "odd.toml"
    for name in ("[/bo] [bold]bo b\u00f6 :smile:", "x" * 150):
        path.write_text(ODD.format(name=name, values="[0, 1]"), encoding="utf-8")
        done = run("evaluate", path, "-m", "ucb1")
        assert done.returncode == 0, done.stderr
        assert name in done.stdout.replace("\n", "") or name[:22] in done.stdout
        assert run("evaluate", path, "-m", "ucb1", encoding="ascii").returncode == 0


def test_help_and_version():
    assert "evaluate" in run("--help").stdout
    assert run("--version").stdout == f"cloneproof {cp.__version__}\n"


def test_a_closed_pipe_is_no_traceback():
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as closed:
        done = run("mechanisms", "--json", out=closed)
    assert (done.returncode, done.stderr) == (141, "")


def test_progress_only_on_a_terminal():
    leader, follower = pty.openpty()
    with ThreadPoolExecutor(1) as reader:
        reading = reader.submit(everything, leader)
        with open(follower, "w") as terminal:
            done = run("evaluate", CREATORS, "-m", "ucb1", "--engine", "runs", "--runs", 3, err=terminal)
        shown = reading.result()
    os.close(leader)
    assert b"pulls/s" in shown
    assert "The platform loses" in done.stdout


INTERRUPTED = """
import os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it may be ignored
from cloneproof.cli import app, main
timer = threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT))
timer.daemon = True
timer.start()
main()
"""


@pytest.mark.parametrize(
    "arguments",
    [("reproduce", "--out", "out"), ("recommend", "creators.toml", "--seconds", "600")],
    ids=lambda arguments: arguments[0],
)
def test_ctrl_c_ends_a_long_command_at_once_with_130(arguments, tmp_path):
    (tmp_path / "creators.toml").write_bytes(CREATORS.read_bytes())
    command = [sys.executable, "-c", INTERRUPTED, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 130
    assert "Traceback" not in done.stderr


def test_a_full_disk_is_one_sentence():
    with open("/dev/full", "w") as full:
        done = run("mechanisms", out=full)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr


def test_a_killed_worker_is_one_sentence(monkeypatch):
    def killed(*_, **__):
        raise BrokenProcessPool("a child process terminated abruptly")

    monkeypatch.setattr("cloneproof.paper.run_rows.reproduce", killed)
    done = run("reproduce", "--out", "nowhere")
    assert done.returncode == 2
    assert "fault of cloneproof" not in done.stderr
    assert "worker process" in done.stderr


def test_a_piped_table_has_every_cell_in_one_piece(tmp_path, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    names = [f"a-provider-with-a-rather-long-name-of-its-own-number-{k}" for k in range(6)]
    table = '[[agents]]\nname = "{}"\noriginals = 1\nprior = {{ point = 0.5 }}\n'
    agents = "".join(map(table.format, names))
    (tmp_path / "market.toml").write_text(f"horizon = 5\n{agents}")
    done = run("evaluate", tmp_path / "market.toml", "-m", "etc", "--set", "arm_rounds=1", "--horizons", "1:3")
    assert done.returncode == 0
    assert all(name in done.stdout for name in names)


COMMANDS = sorted(command.callback.__name__ for command in app.registered_commands)


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_no_line_is_cut(monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    done = run(*filter(None, [command]), "--help")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert [line for line in lines if re.search(r"\.\.\.?$", line) and not line.startswith("Usage:")] == []
    assert max(map(len, lines)) <= 80


def test_escapes_in_cells_are_shown_and_not_obeyed(capsys):
    print_sections([Section("title\x1b[31m", [Table.of(("name",), [("a\x1b[2J\x9bb\x07",)])])])
    out = capsys.readouterr().out
    assert "a\\x1b[2J\\x9bb\\x07" in out
    assert not {"\x1b", "\x9b", "\x07"} & set(out)


def test_text_in_a_csv_file_is_no_formula():
    table = SweepTable({"market": ['=HYPERLINK("x")', "+1", "plain"], "value": [-0.5, 1.5, None]})
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert [row["market"] for row in rows] == ['\'=HYPERLINK("x")', "'+1", "plain"]
    assert [row["value"] for row in rows] == ["-0.5", "1.5", ""]


def test_a_count_may_have_commas_or_an_exponent():
    counts = ("1,200", "1200", "1.2e3")
    found = [run("evaluate", CREATORS, "-m", "thompson", "--runs", 2, "--seed", count, "--json") for count in counts]
    assert {each.returncode for each in found} == {0}
    assert len({each.stdout for each in found}) == 1
    options = "--agents", "2", "--originals", "1", "--rates", ".1,.3", "--seconds", "1", "--json"
    with ticking(0.1):  # time is over early: only the market is looked at
        one, other = (run("recommend", *options, "--rounds", rounds) for rounds in ("20,000", "2e4"))
    assert json.loads(one.stdout)["market"] == json.loads(other.stdout)["market"]
    set_to = [run("evaluate", CREATORS, "-m", "etc", "--set", f"arm_rounds={rounds}", "--json") for rounds in counts]
    assert set_to[0].stdout == set_to[1].stdout
    last = run("evaluate", CREATORS, "-m", "etc", "--set", "arm_rounds=2", "--horizons", "1,000:1,001", "--json")
    assert [row["horizon"] for row in json.loads(last.stdout)["horizons"]] == [1000, 1001]


def test_a_long_command_says_where_it_is_without_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(output, "PAUSE", 0.0)
    with output.working("auditing") as tell:
        tell(3, 17, "auditing etc, ucb1")
    assert capsys.readouterr().err == "note: auditing etc, ucb1; 3 of 17 done\n"
