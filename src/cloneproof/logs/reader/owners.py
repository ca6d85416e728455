"""Whose arm it is, where the log does not say: a file of two columns, or a mapping."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike

from cloneproof.errors import LogError, brief
from cloneproof.logs.reader.columns import chosen_columns
from cloneproof.logs.reader.sources import log_source

Owners = Mapping[str, str]


def read_owners(owners: object, arm: str | None = None, agent: str | None = None) -> dict[str, str]:
    """The agent of each arm; a file's columns by name, or the first that is called like an arm and like an agent.

    >>> read_owners({"a": "ana", 7: "bo"})
    {'a': 'ana', '7': 'bo'}
    """
    if isinstance(owners, Mapping):
        return {str(key): str(value) for key, value in owners.items()}
    if not isinstance(owners, str | PathLike):
        raise LogError(f"expected a mapping of arms to agents, or a file of them, got {brief(owners)}; give one")
    source = log_source(owners)
    known = list(source.columns)
    if len(known) == 2 and arm is None and agent is None:
        pair = known
    else:
        here = {"arm": arm if arm in known else None, "agent": agent if agent in known else None}
        found = chosen_columns([*known, "reward"], here | {"reward": "reward"})
        pair = [found.arm, str(found.agent)]
    first, second = (f"CAST({source.columns[name].sql} AS VARCHAR)" for name in pair)
    rows = source.query(
        f"SELECT {first} AS arm, min({second}), count(DISTINCT {second}) FROM {source.rows} GROUP BY arm"
    )
    named = {}
    for name, owner, several in rows:
        if not name or not owner:
            raise LogError("expected an arm and an agent in every line of the owners, got one without; complete it")
        if several > 1:
            raise LogError(f"expected one agent for the arm {brief(name)}, got {several} in the owners; keep one")
        named[str(name)] = str(owner)
    if not named:
        raise LogError("expected owners of arms, got a file without rows; write a line for each arm")
    return named
