"""Read a board: battles, a table of ratings, of win rates against a reference, or of scores by task.

DuckDB reads CSV, Parquet or JSON lines, or a data frame. The kind of table follows from its columns, and their meaning
from their names. The board's `notes` list what was guessed, and `columns=` overrides it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cloneproof._lib.sources import LogSource, guessed_column, log_source, named_column
from cloneproof.boards.board import ELO, MOST_MODELS, Battles, Board, Floats, Scores, bradley_terry, votes_information
from cloneproof.errors import BoardError, brief

MEANINGS: Final[dict[str, tuple[str, ...]]] = {  # what a column may be called, the likeliest first
    "first": ("model_a", "left", "model_1", "model_left", "player_a", "first", "a", "model_x", "x"),
    "second": ("model_b", "right", "model_2", "model_right", "player_b", "second", "b", "model_y", "y"),
    "winner": ("winner", "outcome", "result", "preference", "vote", "label", "judgment"),
    "model": ("model", "model_name", "name", "player", "key", "system", "column 1"),
    "score": ("arena_score", "score", "rating", "elo", "elo_rating", "bt_rating", "arena_elo"),
    "win_rate": ("win_rate", "winrate", "win rate", "length_controlled_winrate"),
    "error": ("standard_error", "se", "std_err", "stderr", "std_error"),
    "interval": ("95_pct_ci", "ci", "95% ci", "confidence_interval", "interval"),
    "low": ("rating_q025", "lower", "low", "ci_low", "lower_bound"),
    "high": ("rating_q975", "upper", "high", "ci_high", "upper_bound"),
    "votes": ("votes", "num_battles", "n_total", "battles", "n", "count", "number_of_votes"),
    "producer": ("organization", "organisation", "producer", "owner", "maker", "org", "developer", "team", "company"),
    "task": ("task", "task_name", "benchmark", "dataset", "metric"),
    "kin": ("adapted_from", "base_model", "parent", "derived_from", "finetuned_from"),
    "producer_a": ("organization_a", "producer_a", "owner_a", "team_a"),
    "producer_b": ("organization_b", "producer_b", "owner_b", "team_b"),
}
FIRST: Final = frozenset({"model_a", "a", "left", "first", "model_1", "x", "win", "model_left"})
SECOND: Final = frozenset({"model_b", "b", "right", "second", "model_2", "y", "loss", "model_right"})
TIE: Final = frozenset({
    "tie", "draw", "both", "equal", "tie (bothbad)", "bothbad", "both_bad", "both bad", "tie_both_bad", "none", "same",
})  # fmt: skip
OF_SCORES: Final = frozenset({"model", "task", "score", "producer", "kin"})  # meanings in a table of scores
NAME_THEM: Final = "name them with --column MEANING=COLUMN (columns= in Python)"
LEAST_TASKS: Final = 5  # columns of numbers that make a table of scores
PERCENT: Final = 100.0
QUANTILE: Final = 1.959964  # half of a 95 % interval, in standard errors


def read_board(
    source: object,
    *,
    owners: object = None,
    columns: Mapping[str, str] | None = None,
) -> Board:
    """Read a board from files or a table.

    Parameters
    ----------
    source : path, several paths, a mapping of columns, or a data frame
        Where the table is.
    owners : mapping, file or "first-word", optional
        Who made which model: a mapping, a file with two columns, or the first word of a model's name. Default: a column
        of the table; where there is none, every model is its own producer.
    columns : mapping, optional
        Columns by meaning where the guess is wrong, e.g. ``{"first": "left", "winner": "label"}``.
    """
    table = log_source(source)
    meanings = _columns(table, columns or {})
    if {"first", "second", "winner"} <= set(meanings):
        models, producers, battles = _battles(table, meanings)
        rated = bradley_terry(battles.wins)
        votes = battles.counts.sum(axis=1).astype(np.int64)
        named = _named_producers(models, producers, owners)
        board = Board(models, named, rated.values, rated.errors, votes, "battles", battles)
    elif "model" in meanings and {"score", "win_rate"} & set(meanings):
        board = _ratings(table, meanings, owners, sure="score" in (columns or {}))
    else:
        raise BoardError(
            "expected battles (model_a, model_b, winner), ratings (model, score) or win rates (model, win_rate); "
            "or, to look for copies, scores (model and a column for each task, or model, task, score); got "
            f"columns {', '.join(map(brief, list(table.columns)[:8]))}; {NAME_THEM}"
        )
    notes = _guesses(meanings)
    if {"error", "interval", "low"} & set(meanings) and board.source != "battles":
        notes.append(
            f"the standard errors say that a model's votes are worth {board.typical_votes():,} (median); votes are "
            "counted so"
        )
    return replace(board, notes=tuple(notes))


def holds_scores(source: object, columns: Mapping[str, str] | None = None) -> bool:
    """Return whether a table has scores by task: a column for each task, or columns for task and score."""
    table = log_source(source)
    meanings = _columns(table, columns or {})
    if "model" not in meanings or {"first", "second", "winner"} <= set(meanings):
        return False
    if "task" in meanings:
        return "score" in meanings
    return not {"score", "win_rate"} & set(meanings) and len(_tasks(table, meanings)) >= LEAST_TASKS


def read_scores(
    source: object, *, owners: object = None, kin: object = None, columns: Mapping[str, str] | None = None
) -> Scores:
    """Read a table of scores: a row for each model and a column for each task, or a row for each score.

    source   as for `read_board`; the columns are model and tasks, or model, task and score
    owners   who made which model, as for `read_board`
    kin      which model each is declared to be adapted from: a mapping, or a file with two columns. Default: a column
             of the table (adapted_from, base_model), if it has one
    columns  columns by meaning where the guess is wrong; those without a meaning are tasks
    """
    if not holds_scores(source, columns):
        raise BoardError(
            f"expected scores (model and a column for each of {LEAST_TASKS} tasks or more, or model, task and score), "
            f"got other columns; {NAME_THEM}"
        )
    table = log_source(source)
    meanings = _columns(table, columns or {})
    notes = _guesses({meaning: name for meaning, name in meanings.items() if meaning in OF_SCORES})
    about = [meaning for meaning in ("model", "producer", "kin") if meaning in meanings]
    if "task" in meanings:
        rows = _texts(table, [meanings[meaning] for meaning in (*about, "task", "score")])
        models, tasks = (tuple(dict.fromkeys(str(row[place] or "") for row in rows)) for place in (0, -2))
        values = _spread_out(rows, models, tasks)
        records = {str(row[0] or ""): dict(zip(about, row, strict=False)) for row in reversed(rows)}
        own = [records[model] for model in models]
    else:
        tasks = _tasks(table, meanings)
        rows = _texts(table, [*(meanings[meaning] for meaning in about), *tasks])
        models = _distinct([str(row[0] or "") for row in rows])
        values = np.array([[_score(text) for text in row[len(about) :]] for row in rows]).reshape(len(rows), -1)
        own = [dict(zip(about, row, strict=False)) for row in rows]
        notes.append(f"{len(tasks):,} other columns are taken for tasks")
    producers = _named_producers(models, [record.get("producer") for record in own], owners)
    parents = [record.get("kin") or "" for record in own]
    if kin is not None:
        given = _two_columns(kin, "kin", "the model it is adapted from")
        parents = [given.get(model, parent) for model, parent in zip(models, parents, strict=True)]
    return Scores(models, tasks, values, producers, tuple(parents), tuple(notes))


def _tasks(table: LogSource, meanings: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns without a meaning that hold numbers, and nothing but numbers."""
    others = [name for name in table.columns if name not in meanings.values()]
    if not others:
        return ()
    texts = [f"trim(CAST({table.columns[name].sql} AS VARCHAR))" for name in others]
    counts = ", ".join(f"count(nullif({text}, '')), count(TRY_CAST(rtrim({text}, '%') AS DOUBLE))" for text in texts)
    (row,) = table.query(f"SELECT {counts} FROM {table.rows}")
    counted = zip(others, row[::2], row[1::2], strict=True)
    return tuple(name for name, filled, numbers in counted if filled == numbers > 0)


def _spread_out(rows: Sequence[Sequence[str | None]], models: Sequence[str], tasks: Sequence[str]) -> Floats:
    """Return rows of (model, .., task, score) as a table; a score that is given twice is averaged."""
    places = [{name: place for place, name in enumerate(names)} for names in (models, tasks)]
    scores = np.array([_score(row[-1]) for row in rows])
    total, seen = np.zeros((2, len(models), len(tasks)))
    at = [[places[0][str(row[0] or "")] for row in rows], [places[1][str(row[-2] or "")] for row in rows]]
    np.add.at(total, tuple(at), np.nan_to_num(scores))
    np.add.at(seen, tuple(at), np.isfinite(scores))
    return np.asarray(np.divide(total, seen, out=np.full(total.shape, np.nan), where=seen > 0))


def _score(text: str | None) -> float:
    return float("nan") if text is None or not text.strip() else _number(text, "a score")


def _guesses(meanings: Mapping[str, str]) -> list[str]:
    return [f"column {table_name!r} is taken for {meaning}" for meaning, table_name in meanings.items()]


def _columns(table: LogSource, wanted: Mapping[str, str]) -> dict[str, str]:
    """Return the column of each meaning: as given, else the first with a matching name, ignoring case and blanks."""
    columns, meanings = list(table.columns), {}
    for meaning, column in wanted.items():
        if meaning not in MEANINGS:
            raise BoardError(f"expected a meaning of {', '.join(MEANINGS)}, got {brief(meaning)}; choose one of them")
        meanings[meaning] = named_column(columns, meaning, column, BoardError)
    for meaning, names in MEANINGS.items():
        free = [name for name in columns if name not in meanings.values()]
        if meaning not in meanings and (place := guessed_column(names, free)) is not None:
            meanings[meaning] = place
    return meanings


def _texts(table: LogSource, names: Sequence[str]) -> list[tuple[str | None, ...]]:
    chosen = ", ".join(f"CAST({table.columns[name].sql} AS VARCHAR)" for name in names)
    return table.query(f"SELECT {chosen} FROM {table.rows}")


def _battles(table: LogSource, columns: Mapping[str, str]) -> tuple[tuple[str, ...], list[str | None], Battles]:
    """Return the models, their producers if columns name them, and the battles."""
    meanings = ["first", "second", "winner", *(name for name in ("producer_a", "producer_b") if name in columns)]
    rows = _texts(table, [columns[meaning] for meaning in meanings])
    if not rows:
        raise BoardError("expected battles, got a table without rows; give at least one")
    spelling = _spelling({row[2] for row in rows})
    places: dict[str, int] = {}
    makers_of: dict[str, str] = {}
    first, second, points = [], [], []
    for number, (left, right, winner, *makers) in enumerate(rows, start=1):
        if not left or not right or left == right:
            raise BoardError(f"expected two different models, got {brief(left)} and {brief(right)} in row {number}")
        first.append(places.setdefault(left, len(places)))
        second.append(places.setdefault(right, len(places)))
        points.append(_points(winner, left, right, spelling, number))
        makers_of.update({name: maker for name, maker in zip((left, right), makers, strict=False) if maker})
    if len(places) > MOST_MODELS:
        raise BoardError(f"expected at most {MOST_MODELS:,} models, got {len(places):,}; is that the right column?")
    battles = Battles.from_sequence(len(places), first, second, points)
    return tuple(places), [makers_of.get(name) for name in places], battles


def _spelling(values: set[str | None]) -> dict[str, float]:
    """Return the points for the first model that each spelling of the winner stands for."""
    words = {(value or "").strip().lower() for value in values}
    if words <= {"0", "1", "0.5", "0.0", "1.0"}:
        return {word: float(word) for word in words}
    table = dict.fromkeys(FIRST, 1.0) | dict.fromkeys(SECOND, 0.0) | dict.fromkeys(TIE, 0.5)
    return table | {"1": 1.0, "2": 0.0, "0": 0.5, "3": 0.5}


def _points(winner: str | None, left: str, right: str, spelling: Mapping[str, float], number: int) -> float:
    word = (winner or "").strip().lower()
    if word in spelling:
        return spelling[word]
    if winner in (left, right):
        return 1.0 if winner == left else 0.0
    raise BoardError(
        f"expected model_a, model_b or tie (or left, right; 1, 2) as the winner, got {brief(winner)} in row {number}; "
        "respell it"
    )


def _ratings(table: LogSource, columns: Mapping[str, str], owners: object, *, sure: bool) -> Board:
    """Return a table of ratings, or of win rates against one reference."""
    meanings = [name for name in MEANINGS if name in columns and not name.startswith(("first", "second", "winner"))]
    rows = _texts(table, [columns[meaning] for meaning in meanings])
    if not rows:
        raise BoardError("expected models, got a table without rows; give at least two")
    records = [dict(zip(meanings, row, strict=True)) for row in rows]
    models = _distinct([str(record["model"] or "") for record in records])
    producers = _named_producers(models, [record.get("producer") for record in records], owners)
    votes = np.array([_number(record.get("votes") or "0", "votes") for record in records]).astype(np.int64)
    if "win_rate" in columns and "score" not in columns:
        return _win_rates(records, models, producers, votes)
    values = np.array([_number(record["score"], "score") for record in records])
    if not sure and "elo" not in columns["score"].lower() and values.min() >= 0 and values.max() <= PERCENT:
        name = columns["score"]
        raise BoardError(
            f"expected Elo ratings as the score, got numbers from {values.min():g} to {values.max():g} in the column "
            f"{brief(name)}; say --column score={name} if they are Elo points, --column win_rate={name} if they are "
            "battles won in percent"
        )
    errors = _errors([_rating_error(record) for record in records], votes, votes_information(values, values))
    return Board(models, producers, values, errors, votes, "ratings")


def _win_rates(
    records: Sequence[Mapping[str, str | None]],
    models: tuple[str, ...],
    producers: tuple[str, ...],
    votes: NDArray[np.int64],
) -> Board:
    rates = np.array([_number(record["win_rate"], "win_rate") for record in records])
    unit = PERCENT if rates.max() > 1 else 1.0
    means = rates / unit
    if means.min() < 0 or means.max() > 1:
        raise BoardError(
            f"expected win rates from 0 to 1 or from 0 to 100, got {brief(float(rates.max()))}; rescale them"
        )
    inner = np.clip(means, 1e-4, 1 - 1e-4)
    values = np.log(inner / (1 - inner)) * ELO
    slopes = ELO / (inner * (1 - inner))
    given = [_number(record["error"], "error") / unit if record.get("error") else None for record in records]
    in_elo = [None if error is None else error * slope for error, slope in zip(given, slopes, strict=True)]
    errors = _errors(in_elo, votes, votes_information(values, np.zeros(1)))
    return Board(models, producers, values, errors, votes, "win rates", means=means)


def _errors(given: Sequence[float | None], votes: NDArray[np.int64], information: Floats) -> Floats:
    """Return standard errors on the Elo scale: as given, else from the votes, else 0 (not known)."""
    counted = np.divide(ELO, np.sqrt(votes * information), out=np.zeros(len(votes)), where=votes > 0)
    return np.array([own if error is None else error for error, own in zip(given, counted, strict=True)])


def _rating_error(record: Mapping[str, str | None]) -> float | None:
    """Return the standard error that a row states: an error, an interval, or two ends."""
    if record.get("error"):
        return _number(record["error"], "error")
    if record.get("interval"):
        ends = [abs(float(text)) for text in re.findall(r"[-+]?\d+\.?\d*", str(record["interval"]))]
        if not ends:
            raise BoardError(f"expected an interval such as +5/-5, got {brief(record['interval'])}; write numbers")
        return sum(ends[:2]) / len(ends[:2]) / QUANTILE
    if record.get("low") and record.get("high"):
        return (_number(record["high"], "high") - _number(record["low"], "low")) / 2 / QUANTILE
    return None


def _number(text: str | None, what: str) -> float:
    try:
        value = float(str(text).replace(",", "").rstrip("%"))
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise BoardError(f"expected a number as {what}, got {brief(text)}; fix that row or name another column")
    return value


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Number names that occur twice, as the same model may be listed twice."""
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        if not name:
            raise BoardError("expected a name for each model, got an empty one; complete the table")
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(distinct)


def _named_producers(models: Sequence[str], makers: Sequence[str | None], owners: object) -> tuple[str, ...]:
    """Return the producer of each model: from `owners`, else from the table, else the model itself."""
    if owners is None:
        return tuple(maker or model for model, maker in zip(models, makers, strict=True))
    if isinstance(owners, str) and owners == "first-word":
        return tuple(re.split(r"[\s\-_/]", model.strip())[0] or model for model in models)
    table = _two_columns(owners, "owners", "producer")
    missing = [model for model in models if model not in table]
    if missing:
        raise BoardError(f"expected an owner for each model, got none for {brief(missing[0])}; {len(missing)} lack one")
    return tuple(table[model] for model in models)


def _two_columns(given: object, what: str, second: str) -> dict[str, str]:
    """Return a mapping, or the first two columns of a file, as texts by model."""
    if isinstance(given, Mapping):
        return {str(model): str(value) for model, value in given.items()}
    source = log_source(given)
    if len(source.columns) < 2:
        raise BoardError(f"expected {what} in two columns, model and {second}, got one column; add the other")
    return {str(model): str(value) for model, value in _texts(source, list(source.columns)[:2])}
