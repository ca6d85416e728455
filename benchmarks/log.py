"""Rows a second of `cp.read_log` and its memory, beside DuckDB and pandas grouping the three columns that are needed.

python benchmarks/log.py                    # 4,000,000 rows, CSV and Parquet
python benchmarks/log.py --rows 10000000 --parquet-only     # beside DuckDB alone
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NEEDED = ["advertiser", "campaign", "click"]
PARTS = 4_000_000  # rows of a Parquet file
TURNS = 3  # of which the median counts


def write(folder, rows, csv):
    import duckdb

    connection = duckdb.connect(config={"memory_limit": "1GB"})
    for part, begin in enumerate(range(0, rows, PARTS)):
        made = (
            f"SELECT range AS impression, 'adv-' || (hash(range) % 200) AS advertiser, "
            f"'camp-' || (hash(range) % 200) || '-' || (hash(range * 7) % 3) AS campaign, range % 4 AS position, "
            f"CAST(hash(range * 13) % 20 = 0 AS TINYINT) AS click FROM range({begin}, {min(rows, begin + PARTS)})"
        )
        connection.execute(f"COPY ({made}) TO '{folder}/{part:04d}.parquet'")
    if csv:
        connection.execute(f"COPY (SELECT * FROM '{folder}/*.parquet') TO '{folder}/log.csv'")


def ours(place):
    import cloneproof as cp

    return sum(arm.rounds for arm in cp.read_log(place).arms)


def pandas(place):
    import pandas as pd

    csv = place.endswith(".csv")
    frame = pd.read_csv(place, usecols=NEEDED) if csv else pd.read_parquet(place, columns=NEEDED)
    return int(frame.groupby(NEEDED[:2])["click"].agg(["count", "sum"])["count"].sum())


def duckdb(place):
    import duckdb as db

    rows = db.sql(f"SELECT {NEEDED[0]}, {NEEDED[1]}, count(*), sum({NEEDED[2]}) FROM '{place}' GROUP BY ALL").fetchall()
    return sum(row[2] for row in rows)


def warm():
    """Import what each needs."""
    import pandas  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import cloneproof as cp

    cp.read_log({"advertiser": ["a"], "campaign": ["b"], "click": [1]})


def measured(way, place, rows):
    """Seconds of the work alone, of the processor too, and the largest memory in MiB, in a process of its own.

    Imports do not count, for neither.
    """
    code = (
        f"import sys, time, resource; sys.path.insert(0, {str(Path(__file__).parent)!r}); import log; log.warm(); "
        "c = time.process_time(); t = time.perf_counter(); "
        f"n = log.{way}({place!r}); d = time.perf_counter() - t; "
        "print(n, d, time.process_time() - c, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    found, seconds, cpu, memory = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert int(found) == rows
    return float(seconds), float(cpu), float(memory)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--parquet-only", action="store_true")
    asked = parser.parse_args()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        write(folder, asked.rows, not asked.parquet_only)
        print(f"{asked.rows:,} rows, written in {time.perf_counter() - start:.0f} s")
        places = [f"{folder}/*.parquet"] if asked.parquet_only else [f"{folder}/log.csv", f"{folder}/0000.parquet"]
        for place in places:
            rows = min(asked.rows, PARTS) if place.endswith("0000.parquet") else asked.rows
            ways = ["ours", "duckdb", *([] if asked.parquet_only else ["pandas"])]
            turns = [{way: measured(way, place, rows) for way in ways} for _ in range(TURNS)]
            print(Path(place).suffix[1:])
            for way in ways:
                seconds, cpu, memory = (statistics.median(turn[way][k] for turn in turns) for k in range(3))
                ratio = statistics.median(turn[way][1] / turn["ours"][1] for turn in turns)
                print(
                    f"  {way:7} {rows / seconds / 1e6:6.1f} million rows a second, {cpu:.2f} s of processor time "
                    f"({ratio:.2f} of ours), {memory:,.0f} MiB at most"
                )


if __name__ == "__main__":
    main()
