"""Files in folders of the package that are not there, and a quicker conformance suite."""

import pytest

from support.sizes import LONG


@pytest.fixture
def add_file(tmp_path, monkeypatch):
    """A function that adds a module to a package, as a file in its folder would."""

    def add(package, name, text):
        folder = tmp_path / name
        folder.mkdir()
        (folder / f"{name}.py").write_text(text)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])

    return add


@pytest.fixture(autouse=not LONG)
def quick(fewer_seeds):
    """Ties are judged from fewer seeds, except in `make test-long`."""
