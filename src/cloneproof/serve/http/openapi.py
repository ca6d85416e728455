"""The OpenAPI document, made from the table of routes and the types of the messages."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cloneproof.serve.api.messages import ItemError

if TYPE_CHECKING:
    from cloneproof.serve.http.routes import Route

_REFUSALS: Final = {
    400: "not JSON",
    401: "no valid key",
    403: "not for this key",
    404: "no such thing",
    409: "not now, or in conflict with what was recorded",
    413: "too large",
    422: "not a valid request",
    429: "too many requests",
    503: "try again",
}
_QUERY: Final = {
    "after": (0, 1 << 40, "the number of the last line already seen"),
    "limit": (1, 1000, "how many lines"),
}


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """The whole document, version 3.1."""
    types = list({type_: None for route in routes for type_ in (route.body, route.reply) if type_ is not None})
    shapes, components = msgspec.json.schema_components([*types, ItemError], ref_template="#/components/schemas/{name}")
    schema_of = dict(zip([*types, ItemError], shapes, strict=True))
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "cloneproof serve",
            "version": "1",
            "description": "A live market run by a clone-proof mechanism. Money is in whole micro-units.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "cp_ID_SECRET"}},
        },
    }


def _operation(route: Route, schema_of: dict[Any, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": (inspect.getdoc(route.handler) or "").partition("\n")[0],
        "parameters": [*_path_parameters(route), *_query_parameters(route)],
        "responses": {str(status): _content(schema_of[route.reply], "done") for status in route.statuses},
    }
    if route.body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema_of[route.body]}},
        }
    if route.roles:
        operation["security"] = [{"key": []}]
        operation["x-roles"] = sorted(route.roles)
        for status, words in _REFUSALS.items():
            operation["responses"].setdefault(str(status), _content(schema_of[ItemError], words))
    return operation


def _content(schema: Any, words: str) -> dict[str, Any]:  # noqa: ANN401
    return {"description": words, "content": {"application/json": {"schema": schema}}}


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}} for name in names
    ]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "query",
            "description": _QUERY[name][2],
            "schema": {"type": "integer", "minimum": _QUERY[name][0], "maximum": _QUERY[name][1]},
        }
        for name in route.query
    ]
