"""Compile every kernel of Monte Carlo that is cached on disk; `make test` does so before its processes begin."""

import gc

gc.disable()  # searching a compiler's objects for cycles took a fifth of the time

import cloneproof as cp  # noqa: E402

AGENTS = [cp.Agent("ana", 2, cp.Uniform()), cp.Agent("bo", 1, cp.Point(0.5))]
PLAIN, PAGES = (cp.Market(AGENTS, horizon=64, positions=places) for places in (None, (1, 0.5)))
ONE_OF_EACH = (  # a mechanism for each file that the compiler keeps
    (PLAIN, "ucb1"), (PLAIN, "h-ucb"), (PLAIN, "prior-independent-etc"), (PLAIN, "reservoir"),
    (PLAIN, "reservoir-contest"), (PLAIN, "reservoir-contest", ("contest", "ucb")), (PLAIN, "reservoir-index"),
    (PLAIN, "reservoir-bars"), (PLAIN, "epsilon-greedy"), (PLAIN, "thompson"), (PLAIN, "kl-ucb"),
    (PAGES, "reservoir"), (PAGES, "ucb1"),
)  # fmt: skip


def main():
    """Two runs by each of them."""
    for market, name, *options in ONE_OF_EACH:
        made = cp.mechanism(name, market=market, **dict(options))
        cp.evaluate(market, made, engine="monte-carlo", search=cp.Search(runs=2), threads=1)


if __name__ == "__main__":
    main()
