"""What several tests of the service use."""

import pytest

from support.postgres import server_or_skip
from support.service import Desk


def pytest_configure(config):
    """Only here: `pyproject.toml` keeps the plugin out of the other processes, as its import takes seconds."""
    config.pluginmanager.import_plugin("schemathesis.pytest.plugin")


@pytest.fixture
def desk():
    """A service in this process, in memory."""
    with Desk() as made:
        yield made


@pytest.fixture(scope="session")
def server():
    """One PostgreSQL server for all tests of a process."""
    made = server_or_skip()
    yield made
    made.close()
