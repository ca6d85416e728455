"""Where results are written: files whole or not at all, devices and named pipes directly."""

import os
import stat
import threading
from pathlib import Path

import pytest

import cloneproof as cp
from cloneproof._lib.files import check_place, write_whole
from cloneproof.errors import FileError, SweepError
from cloneproof.sweeps.table import check_output
from support.command import run

CREATORS = Path(__file__).parents[1] / "examples" / "creators.toml"


@pytest.fixture
def pipe(tmp_path):
    """A named pipe that is being read, its path and what came through it."""
    path, seen = tmp_path / "pipe.csv", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: seen.append(path.read_bytes()), daemon=True)
    reader.start()

    def received():
        reader.join(10)
        return b"".join(seen)

    return path, received


def test_a_named_pipe_is_written_to_and_stays_one(pipe):
    path, received = pipe
    check_output(path)
    write_whole(path, "what was asked for")
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert received() == b"what was asked for"
    assert [each.name for each in path.parent.iterdir()] == ["pipe.csv"]


def test_a_command_writes_to_a_named_pipe(pipe):
    path, received = pipe
    market = path.with_name("market.toml")
    cp.save_market(cp.Market([cp.Agent("ana", 2, cp.Discrete([0.25, 0.75], [0.5, 0.5]))], horizon=40), market)
    done = run("audit", market, "-m", "etc", "--set", "arm_rounds=2", "--html", path)
    assert done.returncode == 1, done.stderr
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert b"etc can be gamed" in received()


def test_a_device_stays_a_device(tmp_path):
    device = tmp_path / "nothing"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        with device.open("wb"):
            pass
    except OSError as refusal:
        pytest.skip(f"device nodes cannot be made or opened here: {refusal}")
    write_whole(device, "gone")
    assert stat.S_ISCHR(device.stat().st_mode)


def test_a_link_stays_a_link_to_the_new_content(tmp_path):
    (tmp_path / "old").write_text("before")
    (tmp_path / "link").symlink_to("old")
    write_whole(tmp_path / "link", "after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "old").read_text() == "after"


def test_a_link_to_a_named_pipe_is_followed(pipe):
    path, received = pipe
    link = path.with_name("link")
    link.symlink_to(path)
    write_whole(link, "through")
    assert received() == b"through"
    assert link.is_symlink()
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc")
@pytest.mark.parametrize("command", [("recommend", "--html"), ("audit", "-m", "h-etc-r", "--html"), ("log", "--html")])
def test_a_folder_that_takes_no_files_is_refused_before_any_work(command):
    done = run(command[0], CREATORS, *command[1:], "/proc/page.html")
    assert done.returncode == 2
    assert done.stderr == (
        "error: expected a place that may be written, got /proc/page.html, which may not; choose another\n"
    )


def test_places_where_nothing_can_be_written(tmp_path):
    with pytest.raises(FileError, match="got the folder"):
        check_place(tmp_path)
    with pytest.raises(SweepError, match=r"make .*missing first"):
        check_output(tmp_path / "missing" / "table.csv")
    with pytest.raises(FileError, match="or its folder"):
        write_whole(tmp_path / "missing" / "page.html", "")
