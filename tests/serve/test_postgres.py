"""PostgreSQL: several processes on one market, exactly once over all of them, one chain, restarts of the database."""

import os
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from test_stateful import Market

from cloneproof.serve import shared
from cloneproof.serve.protocol import ServeError
from cloneproof.serve.reading import replay_all
from cloneproof.serve.storage import open_storage
from cloneproof.serve.storage.postgres import PostgresStorage
from cloneproof.serve.storage.postgres_link import without_password
from postgres_support import emptied
from serve_support import Desk, open_market

FEED = "/v1/markets/feed"


@pytest.fixture
def address(server):
    return server.new_database()


def machine_on(address):
    """The API against the model, each call through one of two services on the same database, with restarts."""

    class MarketOnPostgres(Market):
        def new_storage(self):
            return PostgresStorage(emptied(address), interval=7)

        def __init__(self):
            super().__init__()
            self.other = self.desk
            self.desk = self.another()

        def another(self):
            made = Desk(PostgresStorage(address, interval=7), clock=self.other.clock)
            made.key = self.other.key
            return made

        @rule()
        def go_to_the_other_service(self):
            self.desk, self.other = self.other, self.desk

        @rule(orderly=st.booleans())
        def restart(self, orderly):
            if orderly:
                self.desk.close()
            else:
                self.desk.storage.close()
                self.desk.runner.close()
            self.desk = self.another()

        def teardown(self):
            try:
                super().teardown()
            finally:
                self.other.close()

    return MarketOnPostgres


def test_two_services_are_the_model(address):
    examples = int(os.environ.get("CLONEPROOF_STATEFUL_EXAMPLES", "6"))
    few = settings(max_examples=examples, stateful_step_count=40, deadline=None)
    run_state_machine_as_test(machine_on(address), settings=few)
