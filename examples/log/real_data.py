"""Real logs to try `cloneproof log` on, taken from the wheels of two packages that bring them (`make log-data`).

The Open Bandit Dataset's sample (Saito et al. 2020), 10,000 impressions of 80 clothes drawn evenly, with propensities,
and MovieLens-100k (Harper and Konstan 2015), ratings from 1 to 5. Neither has providers: a feature of the items stands
in for them, the first item feature there and the year of release here, in a file for --owners. 18 films of MovieLens
stand in it twice, under two numbers with one title. Only data files are unpacked.

    python examples/log/real_data.py build/log-data
"""

import csv
import io
import sys
import zipfile
from pathlib import Path

OPEN_BANDIT = "obp/dataset/obd/random/all"
MOVIES = "recbole/dataset_example/ml-100k/ml-100k"


def unpacked(wheels, package, name):
    """The text of one file in the wheel of a package."""
    wheel = next(Path(wheels).glob(f"{package}-*.whl"), None)
    if wheel is None:
        raise SystemExit(f"expected the wheel of {package} in {wheels}, got none; run `make log-data`")
    with zipfile.ZipFile(wheel) as opened:
        return opened.read(name).decode("utf-8")


def write_owners(path, pairs):
    """The agent of each arm, as --owners reads it."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("item_id", "agent"))
        writer.writerows(sorted(pairs))


def main(folder):
    """Unpack both logs and write their owners."""
    folder = Path(folder)
    wheels = folder / "wheels"
    (folder / "open_bandit.csv").write_text(unpacked(wheels, "obp", f"{OPEN_BANDIT}/all.csv"), encoding="utf-8")
    items = csv.DictReader(io.StringIO(unpacked(wheels, "obp", f"{OPEN_BANDIT}/item_context.csv")))
    features = [(row["item_id"], row["item_feature_1"]) for row in items]
    short = {feature: f"feature-{number:02d}" for number, feature in enumerate(sorted({each for _, each in features}))}
    write_owners(folder / "open_bandit_owners.csv", {(item, short[feature]) for item, feature in features})
    lines = [line.split("\t") for line in unpacked(wheels, "recbole", f"{MOVIES}.item").splitlines()[1:]]
    titles = {item: f"{title} ({year})" for item, title, year, *_ in lines}
    with open(folder / "movielens.tsv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(("user_id", "item_id", "rating", "timestamp", "title"))
        for line in unpacked(wheels, "recbole", f"{MOVIES}.inter").splitlines()[1:]:
            user, item, rating, moment = line.split("\t")
            writer.writerow((user, item, rating, moment, titles[item]))
    write_owners(folder / "movielens_owners.csv", {(item, f"year-{year or 'unknown'}") for item, _, year, *_ in lines})
    print(f"{folder}: open_bandit.csv and movielens.tsv, with their owners")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "build/log-data")
