"""What several tests of the service use."""

import pytest

from support.postgres import server_or_skip


def pytest_configure(config):
    """Only here: `pyproject.toml` keeps the plugin out of the other processes, as its import takes seconds."""
    config.pluginmanager.import_plugin("schemathesis.pytest.plugin")


@pytest.fixture(scope="session")
def server():
    """One PostgreSQL server for all tests of a process."""
    made = server_or_skip()
    yield made
    made.close()
