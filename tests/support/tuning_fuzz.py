"""Parameters of mechanisms for random markets, in a process of their own, within limits on CPU time and memory.

python tuning_fuzz.py MARKETS MECHANISM ..
"""

import random
import resource
import sys
import time
from contextlib import suppress

import cloneproof as cp
from cloneproof.errors import MechanismError

SECONDS, KILOBYTES = 10.0, 200_000  # of CPU time, twice what a quiet machine takes; above what the import takes


def small_market(rng: random.Random) -> cp.Market:
    """Up to 20 agents, ten values and 10^9 rounds; values are often 0, 1, tiny or close together."""
    spread, least = 10 ** -rng.uniform(0, 5), rng.choice([0, rng.random()])
    values = [
        rng.choice([0, 1, rng.random(), min(1, least + spread * rng.random())]) for _ in range(rng.randint(1, 10))
    ]

    def prior():
        some = sorted(set(rng.sample(values, rng.randint(1, len(values)))))
        weights = [10 ** -rng.uniform(0, 2.5) for _ in some]
        return cp.Discrete(some, [weight / sum(weights) for weight in weights]) if len(some) > 1 else cp.Point(some[0])

    common = prior() if rng.random() < 0.5 else None
    most = rng.choice([1, 2, 3, 5, 10])
    agents = [cp.Agent(f"a{k}", rng.randint(1, most), common or prior()) for k in range(rng.choice([1, 2, 3, 8, 20]))]
    return cp.Market(agents, round(10 ** rng.uniform(0, 9)))


def main(name: str, markets: int) -> None:
    """A line for each market beyond a limit, and if all were refused; other errors than refusals end the process."""
    cp.mechanism(name, market=cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 0.5], [0.6, 0.4]))], 100))
    before, slowest, made = kilobytes(), 0.0, 0
    for seed in range(markets):
        market, begin = small_market(random.Random(seed)), time.process_time()
        with suppress(MechanismError):
            cp.mechanism(name, market=market)
            made += 1
        seconds = time.process_time() - begin
        slowest = max(slowest, seconds)
        if seconds > SECONDS or kilobytes() - before > KILOBYTES:
            print(f"{name}, seed {seed}: {seconds:.1f} s of CPU time, {(kilobytes() - before) / 1000:.0f} MB")
            before = kilobytes()
    if not made:
        print(f"{name}: all {markets} markets were refused, so that no limit was tried")
    print(f"{name}: at most {slowest:.2f} s, {(kilobytes() - before) / 1000:.0f} MB", file=sys.stderr)


def kilobytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    for mechanism in sys.argv[2:]:
        main(mechanism, int(sys.argv[1]))
