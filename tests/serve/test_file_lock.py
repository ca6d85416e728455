"""One service to a file, by whatever name it is reached; a file that is gone is noticed; files are 0600."""

import os
import sqlite3
import stat

import pytest

from cloneproof.errors import ServeError
from cloneproof.serve.storage import open_storage
from support.service import Desk, open_market, sqlite

FEED = "/v1/markets/feed"


def by_symlink(path):
    other = path.with_name("other.db")
    other.symlink_to(path)
    return other


def by_hard_link(path):
    other = path.with_name("other.db")
    os.link(path, other)
    return other


def without_lock_file(path):
    path.with_name("a.db.lock").unlink(missing_ok=True)
    return path


@pytest.mark.parametrize("reach", [by_symlink, by_hard_link, without_lock_file])
def test_a_second_service_is_refused_by_every_name_of_the_file(tmp_path, reach):
    storage = sqlite(tmp_path / "a.db")
    with pytest.raises(ServeError, match=r"already served|has 2 names"):
        open_storage(str(reach(tmp_path / "a.db")))
    storage.close()


def test_a_file_with_two_names_is_refused_also_when_nobody_serves_it(tmp_path):
    """Each name has a write-ahead log of its own, so what was committed by one name would be missing by the other."""
    sqlite(tmp_path / "a.db").close()
    other = by_hard_link(tmp_path / "a.db")
    with pytest.raises(ServeError, match="has 2 names"):
        open_storage(str(other))
    other.unlink()
    open_storage(str(tmp_path / "a.db")).close()


def test_the_lock_ends_with_the_storage_and_leaves_no_file(tmp_path):
    storage = sqlite(tmp_path / "a.db")
    with pytest.raises(ServeError, match="already served"):
        sqlite(tmp_path / "a.db")
    with pytest.raises(ServeError, match="already served"):
        sqlite(tmp_path / "a.db")  # whoever was refused has not ended the lock
    storage.close()
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]
    open_storage(str(tmp_path / "a.db")).close()


def test_the_lock_keeps_another_process_out(tmp_path):
    path, kept = tmp_path / "a.db", sqlite(tmp_path / "a.db")
    pid = os.fork()
    if pid == 0:
        from cloneproof.serve.storage import file_lock

        file_lock._held.clear()  # what another process does not know
        try:
            file_lock.FileLock(str(path))
        except ServeError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    kept.close()


def deleted(path):
    path.unlink()


def moved(path):
    path.rename(path.with_name("elsewhere.db"))


def replaced(path):
    other = path.with_name("restored.db")
    connection = sqlite3.connect(path)
    connection.execute("VACUUM INTO ?", (str(other),))
    connection.close()
    os.replace(other, path)


def without_log(path):
    path.with_name("a.db-wal").unlink()


@pytest.mark.parametrize("lose", [deleted, moved, replaced, without_log])
def test_a_file_that_is_gone_is_noticed_at_once_and_nothing_is_acknowledged(tmp_path, lose):
    with Desk(sqlite(tmp_path / "a.db")) as desk:
        open_market(desk, {"ana": 1})
        assert desk.call("GET", "/ready").status_code == 200
        lose(tmp_path / "a.db")
        assert desk.call("GET", "/ready").status_code == 503
        for _ in range(3):
            assert desk.call("POST", f"{FEED}/decisions", {"request_id": "r"}).status_code == 503
            assert desk.call("POST", "/v1/keys", {"role": "auditor"}).status_code == 503


def test_files_are_for_their_owner_alone(tmp_path):
    before = os.umask(0o022)
    try:
        with Desk(sqlite(tmp_path / "a.db")) as desk:
            open_market(desk, {"ana": 1})
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert set(modes) >= {"a.db", "a.db-wal", "a.db-shm"}
    assert set(modes.values()) == {0o600}
