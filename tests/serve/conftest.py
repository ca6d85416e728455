"""What several tests of the service use."""

import pytest

from support.postgres import server_or_skip


@pytest.fixture(scope="session")
def server():
    """One PostgreSQL server for all tests of a process."""
    made = server_or_skip()
    yield made
    made.close()
