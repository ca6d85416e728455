"""Formats of others whose rows name an item only indirectly: columns that are computed from theirs.

Vowpal Wabbit's decision-service lines (dsjson)  `_label_Action` is a position, from 1, in the list `c._multi` of its
    own row. The features of the action there become columns such as `c._multi._tag`, and those of the user such as
    `c.GUser.id`; a list of objects is read by its first one.
GrowthBook's contextual bandits  `variation_weights` has the probability of every variation in the leaf of a user, of
    which that of the variation served (`variation_id`, from 0) becomes a column.
LiteLLM's adaptive router  A row of its table of states has the successes (`alpha`) and failures (`beta`) of a model
    for a type of request beyond the prior; their sum becomes a column. Half failures are rounded up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from cloneproof.logs.sources import LogColumn, LogSource, identifier, sampled_objects, text_literal

SPECIAL: Final = ("_multi", "_slots")  # keys of a context that are no features of the user
MOST_FEATURES: Final = 500  # columns made of the features of a context or of an action
DEEPEST: Final = 4  # objects inside each other
CHECKED_ROWS: Final = 1000
SERVED_WEIGHT: Final = "variation_weights[variation_id]"
SIGNALS: Final = "alpha + beta"


def with_computed_columns(source: LogSource) -> LogSource:
    """Return the log with a column for what its rows say indirectly, where its format is known."""
    columns = source.columns
    if "c" in columns and "_label_Action" in columns and source.kind == "json":
        return _with(source, _decision_columns(source))
    if "variation_id" in columns and "variation_weights" in columns:
        weight = _served_weight(columns["variation_id"], columns["variation_weights"])
        sample = f"(SELECT {weight} AS weight FROM {source.rows} LIMIT {CHECKED_ROWS})"
        ((rows, numbers),) = source.query(f"SELECT count(*), count(weight) FROM {sample}")
        return _with(source, {SERVED_WEIGHT: weight}) if rows == numbers else source  # else keys are no positions
    if {"model_name", "alpha", "beta"} <= set(columns):
        alpha, beta = (f"TRY_CAST({columns[name].sql} AS DOUBLE)" for name in ("alpha", "beta"))
        return _with(source, {SIGNALS: f"CAST(ceil({alpha} + {beta}) AS BIGINT)"}, "BIGINT")
    return source


def _with(source: LogSource, computed: Mapping[str, str], kind: str = "VARCHAR") -> LogSource:
    if not computed:
        return source
    more = ", ".join(f"{sql} AS {identifier(name)}" for name, sql in computed.items())
    rows, numbered = (f"(SELECT *, {more} FROM {table})" for table in (source.rows, source.numbered))
    typed = {name: LogColumn(identifier(name), "DOUBLE" if name == SERVED_WEIGHT else kind) for name in computed}
    return replace(source, rows=rows, numbered=numbered, columns={**source.columns, **typed})


def _decision_columns(source: LogSource) -> dict[str, str]:
    """Return the features of the context and of the action that was taken, by name, in SQL."""
    features: dict[str, dict[tuple[str, ...], None]] = {"c": {}, "c._multi": {}}
    for row in sampled_objects(source.files):
        context = row.get("c")
        if not isinstance(context, dict):
            continue
        user = {key: value for key, value in context.items() if key not in SPECIAL}
        features["c"].update(dict.fromkeys(_paths(user)))
        actions = context.get("_multi")
        for action in actions if isinstance(actions, list) else ():
            features["c._multi"].update(dict.fromkeys(_paths(action)))
    where = source.columns["c"].sql
    place = f"TRY_CAST({source.columns['_label_Action'].sql} AS INTEGER)"
    columns: dict[str, str] = {}
    for start, paths in features.items():
        for path in list(paths)[:MOST_FEATURES]:
            name = ".".join([start, *(step for step in path if step != "0")])
            pointer = text_literal("".join("/" + step.replace("~", "~0").replace("/", "~1") for step in path))
            if start == "c":
                columns.setdefault(name, f"json_extract_string({where}, {pointer})")
            else:
                inside = f"json_extract_string({where}, '/_multi/' || ({place} - 1) || {pointer})"
                columns.setdefault(name, f"CASE WHEN {place} >= 1 THEN {inside} END")
    return {name: sql for name, sql in columns.items() if name not in source.columns}


def _paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:  # noqa: ANN401 (JSON)
    """Yield the ways to texts and numbers inside an object; of a list of objects, inside its first."""
    if isinstance(value, dict) and len(path) < DEEPEST:
        for key, inner in value.items():
            yield from _paths(inner, (*path, key))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        yield from _paths(value[0], (*path, "0"))
    elif path and isinstance(value, str | int | float):
        yield path


def _served_weight(variation: LogColumn, weights: LogColumn) -> str:
    place = f"TRY_CAST({variation.sql} AS INTEGER)"
    if weights.kind == "LIST":
        return f"CAST(list_extract({weights.sql}, {place} + 1) AS DOUBLE)"
    inside = f"TRY_CAST(json_extract_string({weights.sql}, '/' || {place}) AS DOUBLE)"
    return f"CASE WHEN json_valid({weights.sql}) AND {place} >= 0 THEN {inside} END"
