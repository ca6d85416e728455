"""Run the rows that are not finished yet, then write the page and the results from what is stored.

    DIR/report.html        the page, self-contained
    DIR/results.json       every verdict, check, table and figure as data; scale, seed and versions; no times
    DIR/timings.json       the seconds that each row took, apart from the results, since no two runs take the same
    DIR/certificates/      what `cloneproof verify` can check
    DIR/rows/              finished rows, from which a second call goes on

The page and the results are made from the stored rows alone, so that a run that was killed and continued yields the
bytes of one that was not.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from cloneproof._files import write_whole
from cloneproof.errors import CloneproofError, did_you_mean
from cloneproof.reproduce.findings import Findings, from_dict
from cloneproof.reproduce.parent_watch import end_with_parent
from cloneproof.reproduce.reproduction_page import Section, page
from cloneproof.reproduce.row import Scale, Setting, rows
from cloneproof.reproduce.row_store import load, store, versions

RowCallback = Callable[[int, int, str], None]  # finished rows, all rows, the rows under way


def reproduce(
    out: str | Path,
    only: Sequence[str] = (),
    scale: Scale = "full",
    seed: int = 0,
    processes: int = 1,
    report: RowCallback | None = None,
) -> dict[str, Any]:
    """Check every statement, or only the rows named, and return what `results.json` holds.

    Rows that are finished in `out` are not run again; with `only`, the page has them as well.
    """
    selected = _select(only)
    folder, setting = _folder(out), Setting(scale, seed)
    left = [name for name in selected if load(folder / "rows", name, setting) is None]
    tell = report or (lambda done, total, what: None)
    with _pool(processes) as pool:
        _run(left, setting, folder / "rows", pool, tell)
        finished = {name: data for name in rows() if (data := load(folder / "rows", name, setting)) is not None}
        sections = [_section(name, from_dict(data["findings"])) for name, data in finished.items()]
        tell(len(rows()), len(rows()), "drawing")
        text = page(sections, scale, seed, versions(), (pool.map if pool else map))
    results = {
        "scale": scale,
        "seed": seed,
        "versions": versions(),
        "timings": "timings.json",
        "rows": {s.name: _heading(s) | finished[s.name]["findings"] for s in sections},
    }
    _write_certificates(folder / "certificates", sections)
    _write_json(
        folder / "timings.json", {"seconds": {name: round(data["seconds"], 3) for name, data in finished.items()}}
    )
    write_whole(folder / "report.html", text)
    _write_json(folder / "results.json", results)  # last: where it is, all is
    return results


def _section(name: str, findings: Findings) -> Section:
    row = rows()[name]
    return Section(name, row.number, row.title, row.claim, row.summary_of(findings), findings)


def _heading(section: Section) -> dict[str, Any]:
    return {
        "number": section.number,
        "title": section.title,
        "claim": section.claim,
        "summary": section.summary,
    }


def _select(only: Sequence[str]) -> list[str]:
    for name in only:
        if name not in rows():
            raise CloneproofError(f"unknown row {name!r}; {did_you_mean(name, rows())}known are {', '.join(rows())}")
    return [name for name in rows() if not only or name in only]


def _folder(out: str | Path) -> Path:
    folder = Path(out)
    try:
        for subfolder in (folder / "rows", folder / "certificates"):
            subfolder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise CloneproofError(f"expected a folder to write into, got {out}: {problem}; choose another") from None
    return folder


def _run(left: list[str], setting: Setting, folder: Path, pool: ProcessPoolExecutor | None, tell: RowCallback) -> None:
    total = len(rows())
    if pool is None:
        for number, name in enumerate(left):
            tell(total - len(left) + number, total, name)
            store(folder, name, setting, *run_timed(name, setting))
        return
    futures = {pool.submit(run_timed, name, setting): name for name in left}
    waiting: set[Future[tuple[Findings, float]]] = set(futures)
    while waiting:
        under_way = [name for future, name in futures.items() if future in waiting and future.running()]
        tell(total - len(waiting), total, ", ".join(under_way))
        done, waiting = wait(waiting, timeout=1.0, return_when=FIRST_COMPLETED)
        for future in done:
            store(folder, futures[future], setting, *future.result())


def _pool(processes: int) -> AbstractContextManager[ProcessPoolExecutor | None]:
    """Fresh processes, which end when this one does, however it ends; None for one process: this one."""
    if processes <= 1:
        return nullcontext()
    return ProcessPoolExecutor(processes, get_context("spawn"), initializer=end_with_parent)


def run_timed(name: str, setting: Setting) -> tuple[Findings, float]:
    """The row's findings and the seconds that they took."""
    start = time.perf_counter()
    findings = rows()[name].run(setting)
    return findings, time.perf_counter() - start


def _write_certificates(folder: Path, sections: Sequence[Section]) -> None:
    for section in sections:
        for name, document in section.findings.certificates.items():
            _write_json(folder / f"{section.name}-{name}.json", document)


def _write_json(path: Path, data: dict[str, Any]) -> None:
    write_whole(path, json.dumps(data, indent=1, allow_nan=False) + "\n")
