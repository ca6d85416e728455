"""What engineers do anyway beside what we offer: clicks lost if all are honest, and what copies gain.

    python studies/alternatives.py play [RUNS] [--gpu]    plays the usual rules that have fewer runs
    python studies/alternatives.py ours                   makes our rows anew, by `cloneproof`
    python studies/alternatives.py table                  prints the tables of docs/which_mechanism.md

All write or read docs/alternatives.csv. Its usual rules have 2,000 runs, six minutes on an H200; on a core 400 runs of
the long season take an hour. Short programs below play them, which share no code with the package: NumPy is
enough, with Numba or, on a card, CuPy. On pages, a view in a place of attention w counts w and a click 1, so that a
listing with s clicks and exposure E has the posterior Beta(a + s, b + max(0, E - s)), where Beta(a, b) is the market's
own prior: nobody has to guess it.

Thompson over listings     the K largest draws fill the K places
de-duplicator              the same, after each copy beyond the first of an item was removed with chance .95
one place a seller         the same, but only the largest draw of a seller competes
pooled posterior           sellers by draws from the posteriors of their pooled records; within each, Thompson

A run has what sellers earn if all are honest, and what they earn if one, or four, list each item several times: the
same rates, fresh clicks. Earnings are expected clicks of what was shown. A gain is a ratio of means, its error one
standard error by the delta method. Devices learn apart from each other, and what they earn is added up.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SEED, RUNS, COPIES, MANY, FOUR, CAUGHT = 52, 400, 5, 50, 4, 0.95
FIVE = (1.0, 0.7, 0.5, 0.4, 0.3)
TEN = (1.0, 0.63, 0.5, 0.43, 0.39, 0.36, 0.33, 0.32, 0.3, 0.29)  # about 1 / log2(1 + place)
FLAT, ONE_EACH, POOLED = 0, 1, 2
OURS = ("reservoir", "reservoir-contest", "reservoir-index", "reservoir-bars")  # in one place
OURS_ON_PAGES = ("reservoir", "reservoir-streams")
ENDS_AT_RANDOM = ("reservoir-index", "reservoir-bars")  # proven, or bounded, in markets that end at random
NORMAL_99, OUR_RUNS = 2.58, 2000
MOST_LISTINGS, MOST_SELLERS, MOST_PLACES = 256, 16, 10  # on a card
TABLE = Path(__file__).parents[1] / "docs" / "alternatives.csv"
NOT_ASKED = (float("nan"), float("nan"))
Numbers = NDArray[np.float64]


class World(NamedTuple):
    """What is listed: the rate and the seller of each listing, sellers in order."""

    rates: Numbers
    owner: NDArray[np.int64]


class Place(NamedTuple):
    """Where sellers meet: how many, items of each, the prior, the attention of places, pages of each device."""

    sellers: int
    items: int
    prior: tuple[float, float]
    attention: tuple[float, ...]
    devices: tuple[int, ...]


PLACES = {
    "16 x 3, Beta(3, 97), 30,000 pages of five": Place(16, 3, (3, 97), FIVE, (30_000,)),
    "16 x 3, Beta(3, 97), 300,000 pages of five": Place(16, 3, (3, 97), FIVE, (300_000,)),
    "5 x 3, Beta(2, 60), 100,000 rounds of one place": Place(5, 3, (2, 60), (1.0,), (100_000,)),
    "8 x 6, Beta(3, 97), 30,000 pages of ten, two devices": Place(8, 6, (3, 97), TEN, (21_000, 9_000)),
}
RULES = {
    "Thompson over listings": (FLAT, 0.0),
    "the same, a de-duplicator catches 95 %": (FLAT, CAUGHT),
    "Thompson, one place a seller": (ONE_EACH, 0.0),
    "`h-thompson`: sellers by pooled posterior": (POOLED, 0.0),
}


@dataclass(frozen=True)
class Row:
    """A line of a table: shares of clicks lost, and gained or lost by copies, each with one standard error.

    one, many  what one seller gains that lists each item 5, or 50 times
    four, rest  what four sellers gain that list each item 5 times, and what the others gain by it
    """

    place: str
    rule: str
    runs: int
    lost: float
    lost_error: float
    one: float
    one_error: float
    many: float
    many_error: float
    four: float
    four_error: float
    rest: float
    rest_error: float


@cache
def _compiled() -> Any:
    import numba

    return numba.njit(cache=True)(_play)


def played_on_cpu(worlds: list[World], where: Place, pages: int, how: int, seed: list[int]) -> Numbers:
    """What each seller earns in each world (worlds x sellers), one after the other."""
    play, attention = _compiled(), np.array(where.attention)
    return np.array([
        play(np.random.default_rng([*seed, number]), *world, where.sellers, attention, pages, where.prior, how)
        for number, world in enumerate(worlds)
    ])  # fmt: skip


def _play(dice, rates, owner, sellers, attention, pages, prior, how):  # noqa: PLR0912 (compiled as one)
    """Play pages with a rule; return what each seller earns in expectation, by what was shown."""
    listings, width = len(rates), len(attention)
    good, bad = np.full(listings, prior[0]), np.full(listings, prior[1])
    clicks, seen = np.zeros(listings), np.zeros(listings)
    seller_clicks, seller_seen = np.zeros(sellers), np.zeros(sellers)
    first = np.searchsorted(owner, np.arange(sellers + 1))
    chosen, worth = np.zeros(width, np.int64), np.zeros(width)
    top, value, earned = np.zeros(sellers, np.int64), np.zeros(sellers), np.zeros(sellers)
    for _ in range(pages):
        candidates, filled = listings if how == FLAT else sellers, 0
        if how == ONE_EACH:
            value[:] = -1.0
            for k in range(listings):
                x = dice.standard_gamma(good[k])
                x /= x + dice.standard_gamma(bad[k])
                if x > value[owner[k]]:
                    value[owner[k]], top[owner[k]] = x, k
        for k in range(candidates):
            if how == FLAT:
                x = dice.standard_gamma(good[k])
                x /= x + dice.standard_gamma(bad[k])
            elif how == ONE_EACH:
                x = value[k]
            else:
                x = dice.standard_gamma(prior[0] + seller_clicks[k])
                x /= x + dice.standard_gamma(prior[1] + max(0.0, seller_seen[k] - seller_clicks[k]))
            if filled < width:
                filled += 1
            elif x <= worth[width - 1]:
                continue
            place = filled - 1
            while place > 0 and worth[place - 1] < x:
                worth[place], chosen[place] = worth[place - 1], chosen[place - 1]
                place -= 1
            worth[place], chosen[place] = x, k
        for place in range(filled):
            k = chosen[place]
            if how == ONE_EACH:
                k = top[k]
            elif how == POOLED:
                most, seller = -1.0, k
                for j in range(first[seller], first[seller + 1]):
                    x = dice.standard_gamma(good[j])
                    x /= x + dice.standard_gamma(bad[j])
                    if x > most:
                        most, k = x, j
            rate, here = attention[place] * rates[k], owner[k]
            earned[here] += rate
            seen[k] += attention[place]
            seller_seen[here] += attention[place]
            if dice.random() < rate:
                clicks[k] += 1
                seller_clicks[here] += 1
            good[k], bad[k] = prior[0] + clicks[k], prior[1] + max(0.0, seen[k] - clicks[k])
    return earned


KERNEL = r"""
struct Dice {
  unsigned long long state;
  __device__ unsigned long long word() {  // splitmix64
    unsigned long long z = (state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  __device__ float uniform() { return ((unsigned)(word() >> 40) + 0.5f) * 0x1p-24f; }
  __device__ float gamma(double shape) {  // Marsaglia and Tsang, shape >= 1
    float d = (float)(shape - 1.0 / 3), c = rsqrtf(9.0f * d);
    for (;;) {
      unsigned long long w = word();
      float u = ((unsigned)w + 0.5f) * 0x1p-32f, angle = (unsigned)(w >> 32) * 0x1p-32f;
      float x = sqrtf(-2.0f * logf(fminf(u, 0.99999994f))) * cospif(2.0f * angle);
      float v = 1.0f + c * x;
      if (v <= 0.0f) continue;
      v = v * v * v;
      float y = uniform();
      if (y < 1.0f - 0.0331f * x * x * x * x || logf(y) < 0.5f * x * x + d * (1.0f - v + logf(v))) return d * v;
    }
  }
  __device__ float beta(double good, double bad) { float x = gamma(good); return x / (x + gamma(bad)); }
};

extern "C" __global__ void play(int worlds, int width, const float* rates, const int* owner, const int* counts,
    int sellers, int places, const float* attention, int pages, float a, float b, int how, unsigned long long seed,
    double* earned) {
  int world = blockIdx.x * blockDim.x + threadIdx.x;
  if (world >= worlds) return;
  Dice dice = {seed};
  dice.state = dice.word() + 0xD1342543DE82EF95ull * (unsigned long long)(world + 1);
  int n = counts[world], first[MOST_SELLERS + 1], chosen[MOST_PLACES], top[MOST_SELLERS];
  float rate[MOST_LISTINGS], worth[MOST_PLACES], value[MOST_SELLERS];
  unsigned char whose[MOST_LISTINGS];
  double clicks[MOST_LISTINGS], seen[MOST_LISTINGS], all_clicks[MOST_SELLERS], all_seen[MOST_SELLERS];
  double sum[MOST_SELLERS];
  for (int s = 0; s <= sellers; s++) first[s] = 0;
  for (int s = 0; s < sellers; s++) all_clicks[s] = all_seen[s] = sum[s] = 0;
  for (int k = 0; k < n; k++) {
    rate[k] = rates[(long)world * width + k], whose[k] = owner[(long)world * width + k];
    clicks[k] = seen[k] = 0;
    for (int s = whose[k] + 1; s <= sellers; s++) first[s] = k + 1;
  }
  for (int page = 0; page < pages; page++) {
    int filled = 0, candidates = how == 0 ? n : sellers;
    if (how == 1) {
      for (int s = 0; s < sellers; s++) value[s] = -1;
      for (int k = 0; k < n; k++) {
        float x = dice.beta(a + clicks[k], b + fmax(0.0, seen[k] - clicks[k]));
        if (x > value[whose[k]]) value[whose[k]] = x, top[whose[k]] = k;
      }
    }
    for (int k = 0; k < candidates; k++) {
      float x;
      if (how == 0) x = dice.beta(a + clicks[k], b + fmax(0.0, seen[k] - clicks[k]));
      else if (how == 1) x = value[k];
      else x = dice.beta(a + all_clicks[k], b + fmax(0.0, all_seen[k] - all_clicks[k]));
      if (filled < places) filled++;
      else if (x <= worth[places - 1]) continue;
      int place = filled - 1;
      for (; place > 0 && worth[place - 1] < x; place--)
        worth[place] = worth[place - 1], chosen[place] = chosen[place - 1];
      worth[place] = x, chosen[place] = k;
    }
    for (int place = 0; place < filled; place++) {
      int k = chosen[place];
      if (how == 1) k = top[k];
      else if (how == 2) {
        float most = -1;
        for (int s = k, j = first[s]; j < first[s + 1]; j++) {
          float x = dice.beta(a + clicks[j], b + fmax(0.0, seen[j] - clicks[j]));
          if (x > most) most = x, k = j;
        }
      }
      int s = whose[k];
      float chance = attention[place] * rate[k];
      sum[s] += chance, seen[k] += attention[place], all_seen[s] += attention[place];
      if (dice.uniform() < chance) clicks[k]++, all_clicks[s]++;
    }
  }
  for (int s = 0; s < sellers; s++) earned[(long)world * sellers + s] = sum[s];
}
"""


def played_on_gpu(worlds: list[World], where: Place, pages: int, how: int, seed: list[int]) -> Numbers:
    """The same on a card, a thread a world."""
    import cupy

    counts = np.array([len(world.owner) for world in worlds], np.int32)
    rates, owner = np.zeros((len(worlds), counts.max()), np.float32), np.zeros((len(worlds), counts.max()), np.int32)
    assert counts.max() <= MOST_LISTINGS
    for number, world in enumerate(worlds):
        rates[number, : counts[number]], owner[number, : counts[number]] = world
    text = KERNEL
    for name in ("MOST_LISTINGS", "MOST_SELLERS", "MOST_PLACES"):
        text = text.replace(name, str(globals()[name]))
    earned = cupy.zeros((len(worlds), where.sellers))
    start = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    cupy.RawKernel(text, "play")(
        (-(-len(worlds) // 32),),
        (32,),
        (
            np.int32(len(worlds)), np.int32(rates.shape[1]), cupy.array(rates), cupy.array(owner), cupy.array(counts),
            np.int32(where.sellers), np.int32(len(where.attention)), cupy.array(where.attention, cupy.float32),
            np.int32(pages), np.float32(where.prior[0]), np.float32(where.prior[1]), np.int32(how), start, earned,
        ),
    )  # fmt: skip
    return np.asarray(earned.get())


def usual_row(name: str, rule: str, runs: int, *, on_gpu: bool = False) -> Row:
    """Play a rule: all honest, one seller and four sellers who list each item several times."""
    where, (how, caught) = PLACES[name], RULES[rule]
    number, which = list(PLACES).index(name), list(RULES).index(rule)
    shape = (len(where.devices), where.sellers, where.items)
    drawn = np.array([np.random.default_rng([SEED, number, run]).beta(*where.prior, shape) for run in range(runs)])
    found = {}
    for case, (who, copies) in enumerate(((0, 1), (1, COPIES), (1, MANY), (FOUR, COPIES))):
        if copies == MANY and not caught:
            continue
        seed = [SEED, number, which, case]
        counts = np.ones((runs, where.sellers, where.items), np.int64)
        counts[:, :who] += np.random.default_rng(seed).binomial(copies - 1, 1 - caught, (runs, who, where.items))
        total = np.zeros((runs, where.sellers))
        for device, pages in enumerate(where.devices):
            worlds = [
                World(
                    np.repeat(rates[device].ravel(), count.ravel()),
                    np.repeat(np.arange(where.sellers), count.sum(axis=1)),
                )
                for rates, count in zip(drawn, counts, strict=True)
            ]
            total += (played_on_gpu if on_gpu else played_on_cpu)(worlds, where, pages, how, [*seed, device + 1])
        found[who, copies] = total
    honest, one, four, many = found[0, 1], found[1, COPIES], found[FOUR, COPIES], found.get((1, MANY))
    lost, error = ratio(honest.sum(axis=1), np.array([best_clicks(where, rates) for rates in drawn]))
    gains = [
        *ratio(one[:, 0], honest[:, 0]),
        *(NOT_ASKED if many is None else ratio(many[:, 0], honest[:, 0])),
        *ratio(four[:, :FOUR].sum(axis=1), honest[:, :FOUR].sum(axis=1)),
        *ratio(four[:, FOUR:].sum(axis=1), honest[:, FOUR:].sum(axis=1)),
    ]
    return Row(name, rule, runs, -lost, error, *gains)


def best_clicks(where: Place, drawn: Numbers) -> float:
    """What the best page of different sellers earns on all devices."""
    total = 0.0
    for pages, rates in zip(where.devices, drawn, strict=True):
        best = np.sort(rates.max(axis=1))[::-1][: len(where.attention)]
        total += pages * float(best @ np.array(where.attention)[: len(best)])
    return total


def ratio(above: Numbers, below: Numbers) -> tuple[float, float]:
    """A ratio of means minus 1, with one standard error by the delta method."""
    found = float(above.mean() / below.mean())
    return found - 1, float((above - found * below).std(ddof=1) / below.mean() / len(above) ** 0.5)


def read() -> list[Row]:
    """The rows of the file; none if there is no file."""
    if not TABLE.exists():
        return []
    kinds = {"int": int, "float": float, "str": str}
    with TABLE.open(newline="", encoding="utf-8") as file:
        return [
            Row(**{field.name: kinds[field.type](line[field.name]) for field in fields(Row)})
            for line in csv.DictReader(file)
        ]


def write(rows: Iterable[Row]) -> None:
    """Write the file: places in their order, usual rules first."""
    rank = list(RULES)
    ordered = sorted(
        rows, key=lambda row: (list(PLACES).index(row.place), rank.index(row.rule) if row.rule in rank else len(rank))
    )
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        lines = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        lines.writeheader()
        for row in ordered:
            cells = asdict(row).items()
            lines.writerow({key: f"{cell:.5g}" if isinstance(cell, float) else cell for key, cell in cells})


def play_all(runs: int, *, on_gpu: bool) -> None:
    """Play every usual rule in every place, and write each row at once."""
    for name, where in PLACES.items():
        for rule, (how, _) in RULES.items():
            kept = read()
            if how == ONE_EACH and len(where.attention) == 1:
                continue  # with one place it is Thompson over listings
            if any((row.place, row.rule) == (name, rule) and row.runs >= runs for row in kept):
                continue
            others = [row for row in kept if (row.place, row.rule) != (name, rule)]
            write([*others, usual_row(name, rule, runs, on_gpu=on_gpu)])
            print(name, rule, "done", flush=True)


def our_rows(name: str) -> Iterator[Row]:
    """What our mechanisms lose there; what copies gain is proven: nothing, or under an index at most a ceiling."""
    import cloneproof as cp
    from cloneproof.runs.estimate import weighted_sum

    where, one = PLACES[name], len(PLACES[name].attention) == 1
    agents = [cp.Agent(f"seller {k + 1}", where.items, cp.Beta(*where.prior)) for k in range(where.sellers)]
    for own in OURS if one else OURS_ON_PAGES:
        lost, best = [], 0.0
        for pages in where.devices:
            ends = "at-random" if own in ENDS_AT_RANDOM else "at-horizon"
            here = cp.Market(agents, pages, positions=None if one else where.attention, ends=ends)
            search = cp.Search(runs=OUR_RUNS, seed=SEED, bounds="asymptotic")
            lost.append((1.0, cp.evaluate(here, cp.mechanism(own, market=here), search=search).regret))
            best += pages * best_on_page(where)
        total = weighted_sum(lost)
        runs = OUR_RUNS if total.kind == "asymptotic" else 0  # else it is computed
        error = total.error / NORMAL_99 if runs else total.error
        rule = f"`{own}`, random end" if own in ENDS_AT_RANDOM else f"`{own}`"
        yield Row(name, rule, runs, total.value / best, error / best, *NOT_ASKED * 4)


def best_on_page(where: Place) -> float:
    """What the best page of different sellers earns in expectation."""
    drawn = np.random.default_rng(SEED).beta(*where.prior, (10**5, where.sellers, where.items))
    best = np.sort(drawn.max(axis=2), axis=1)[:, ::-1][:, : len(where.attention)]
    return float((best @ np.array(where.attention)[: best.shape[1]]).mean())


def table(rows: Iterable[Row]) -> Iterator[str]:
    """The lines of the tables in docs/which_mechanism.md."""
    kept = list(rows)
    for name in PLACES:
        yield f"| {name} | lost, all honest | one lists each item 5 times | four do | the others |"
        yield "|---|---:|---:|---:|---:|"
        for row in kept:
            if row.place == name:
                many = "" if math.isnan(row.many) else f" (50 times: {percent(row.many, row.many_error)})"
                gains = (percent(row.one, row.one_error) + many, percent(row.four, row.four_error))
                proven = ("at most a ceiling",) * 2 if "reservoir-index" in row.rule else ("0, proven",) * 2
                told = (*gains, percent(row.rest, row.rest_error)) if not math.isnan(row.one) else (*proven, "")
                lost = percent(row.lost, row.lost_error if row.runs else 0.0).removeprefix("+")
                yield f"| {row.rule} | {' | '.join((lost, *told))} |"
        yield ""


def percent(share: float, error: float) -> str:
    """A share with its error in percent, in as many digits as the error has; 0: it is computed."""
    digits = 2 if 0 < error < 0.0005 else 1 if error < 0.0095 else 0
    told = f"{100 * share:+.{digits}f}".replace("-", "−")
    return f"{told} ± {100 * error:.{digits}f} %" if error else f"{told} %"


if __name__ == "__main__":
    asked, *rest = sys.argv[1:] or ["table"]
    if asked == "play":
        given = [each for each in rest if each != "--gpu"]
        play_all(int(given[0]) if given else RUNS, on_gpu="--gpu" in rest)
    elif asked == "ours":
        for each in PLACES:
            write([*(row for row in read() if row.place != each or row.rule in RULES), *our_rows(each)])
            print(each, "done", flush=True)
    else:
        print("\n".join(table(read())))
