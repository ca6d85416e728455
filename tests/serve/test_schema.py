"""The OpenAPI document is true: calls made up from it are answered as it says, and never with a fault of ours."""

import os
from contextlib import contextmanager
from itertools import cycle

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

from cloneproof.serve.http.app import ROUTES, document
from cloneproof.serve.storage import open_storage
from cloneproof.serve.storage.postgres import PostgresStorage
from support.service import TERMS, in_thread

EXAMPLES = int(os.environ.get("CLONEPROOF_SCHEMA_EXAMPLES", "1"))
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
schema = schemathesis.openapi.from_dict(document(ROUTES))


@contextmanager
def served(storage):
    """A real server with a running market: its address, and a session with a platform's key."""
    with in_thread(storage) as (address, key), requests.Session() as api:
        api.headers["Authorization"], api.trust_env = f"Bearer {key}", False
        api.post(f"{address}/v1/markets", json=TERMS)
        api.post(f"{address}/v1/markets/feed/agents", json={"agent": "ana"})
        api.post(f"{address}/v1/markets/feed/agents/ana/arms", json={"arm": "x"})
        assert api.post(f"{address}/v1/markets/feed/start").status_code == 200
        yield address, api


@pytest.fixture(scope="module")
def services(request):
    """Whom the next call is for, over memory and over PostgreSQL in turn, or both where many are tried."""
    with served(open_storage(":memory:")) as memory:
        try:
            server = request.getfixturevalue("server")
        except pytest.skip.Exception:  # the tests of PostgreSQL say so
            yield cycle([[memory]])
            return
        with served(PostgresStorage(server.new_database())) as postgres:
            yield cycle([[memory], [postgres]] if EXAMPLES == 1 else [[memory, postgres]])


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
def test_the_document_is_true(case, services):
    if "market" in (case.path_parameters or {}) and len(str(case.path_parameters["market"])) % 2:
        case.path_parameters["market"] = "feed"  # half of the calls meet a market
    for address, api in next(services):
        case.call_and_validate(base_url=address, session=api, checks=CHECKS)


def test_the_document_names_every_route_and_role():
    made = document(ROUTES)
    for route in ROUTES:
        operation = made["paths"][route.path][route.method.lower()]
        assert operation["summary"]
        assert operation.get("x-roles", []) == sorted(route.roles)
        assert ("security" in operation) == bool(route.roles)
        assert not route.roles or operation["responses"]["404"]["description"] == "not found"
