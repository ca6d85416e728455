"""The columns of large Parquet files with the types that DuckDB gives them, without opening a database for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

LARGE: Final = 8 << 20  # bytes of a log from which on loading pyarrow and compiled code pays
PLAIN_TYPES: Final = {"BOOLEAN": "BOOLEAN", "INT32": "INTEGER", "INT64": "BIGINT", "FLOAT": "FLOAT", "DOUBLE": "DOUBLE"}
WIDTHS: Final = {8: "TINYINT", 16: "SMALLINT", 32: "INTEGER", 64: "BIGINT"}
LOGICAL_TYPES: Final = {"String": "VARCHAR"} | {
    f"Int(bitWidth={width}, isSigned={str(signed).lower()})": ("" if signed else "U") + name
    for width, name in WIDTHS.items()
    for signed in (True, False)
}


def parquet_types(files: Sequence[Path], large: int = LARGE) -> dict[str, str] | None:
    """Columns by name, where all files are large and have the same ones, of usual types; else None: ask DuckDB."""
    if any("=" in part for file in files for part in file.parts[:-1]):  # a column may stand in a path
        return None
    try:
        if sum(file.stat().st_size for file in files) < large:
            return None
        from pyarrow import parquet

        found = [_types(parquet.ParquetFile, file) for file in files]
    except Exception:  # pyarrow is missing, or has an objection: DuckDB says what is wrong
        return None
    return found[0] if found[0] is not None and all(types == found[0] for types in found) else None


def _types(opened: Any, file: Path) -> dict[str, str] | None:  # noqa: ANN401
    with opened(file) as parquet:
        columns = [parquet.schema.column(number) for number in range(len(parquet.schema))]
    types = {column.name: _type(column) for column in columns}
    if len({name.lower() for name in types}) < len(columns) or not all(types.values()):
        return None
    return types


def _type(column: Any) -> str:  # noqa: ANN401 (pyarrow has no types)
    """The name in DuckDB; empty where it is not that simple."""
    if column.path != column.name or column.max_repetition_level or column.max_definition_level > 1:
        return ""
    logical = str(column.logical_type)
    return PLAIN_TYPES.get(column.physical_type, "") if logical == "None" else LOGICAL_TYPES.get(logical, "")
