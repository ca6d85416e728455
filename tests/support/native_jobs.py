"""Random jobs for every kernel of the cores: run as a program, it plays some by the library at a path."""

import ctypes
import random
import sys

import cloneproof as cp
from cloneproof.evaluation.reference import runs_of
from cloneproof.market import full_copies
from cloneproof.runs.native import library

LAWS = (cp.Uniform(), cp.Point(0.6), cp.Point(1.0), cp.Discrete([0, 1], [0.5, 0.5]), cp.Beta(2, 40))
FAMILIES = ("bernoulli", "bernoulli", "deterministic", "beta", {"family": "gaussian", "sd": 0.2})


def mechanism(draw, horizon):
    """Any mechanism of the catalogue that a kernel plays, with numbers of its own."""
    draws, rounds = draw.randint(1, 4), draw.randint(1, 6)
    tests = draw.choice([{"choose": "best"}, {"threshold": draw.randint(1, rounds)}])
    contest = {"horizon": horizon, "contest": draw.choice(["kl-ucb", "ucb"]), "constant": 0.4}
    return draw.choice(
        [
            lambda: cp.mechanism("ucb1", constant=draw.choice([2.0, 0.01])),
            lambda: cp.mechanism(draw.choice(["kl-ucb", "thompson", "h-ucb", "h-thompson"])),
            lambda: cp.mechanism("epsilon-greedy", c=draw.choice([0.3, 5.0])),
            lambda: cp.bandit(arm=cp.rule("steady-ucb", horizon=80), agent=cp.rule("ucb")),
            lambda: cp.bandit(arm=cp.rule("uniform"), agent=cp.rule("steady-kl-ucb", horizon=80)),
            lambda: cp.mechanism("etc", arm_rounds=rounds),
            lambda: cp.mechanism("prior-independent-etc", power=2.0),
            lambda: cp.mechanism("uniform-etc", arm_rounds=rounds),
            lambda: cp.mechanism("h-etc-r", agent_rounds=3 * rounds, arm_rounds=rounds),
            lambda: cp.mechanism("h-etc-r", agent_rounds=3 * rounds, arm_rounds=rounds, choice="greedy"),
            lambda: cp.mechanism("reservoir", draws=draws, rounds=rounds, **tests),
            lambda: cp.mechanism("reservoir-contest", draws=draws, rounds=rounds, **tests, **contest),
            lambda: cp.mechanism("reservoir-index", draws=draws, constant=1.5),
            lambda: cp.mechanism("reservoir-bars", bars=draw.choice([0.2, 0.9]), draws=draws),
            lambda: cp.mechanism("reservoir-streams", rotations=rounds, blocks=draws),
        ]
    )()


def jobs(number, seed=3):
    """Random jobs that a compiled kernel plays, on one place or a page of several, to a fixed or a random end."""
    draw = random.Random(seed)
    found = 0
    while found < number:
        agents = [cp.Agent(name, draw.randint(1, 3), draw.choice(LAWS)) for name in "abcd"[: draw.randint(1, 4)]]
        horizon = draw.choice([1, 2, draw.randint(1, 60), draw.randint(60, 900)])
        made, family, places = mechanism(draw, max(2, horizon)), draw.choice(FAMILIES), None
        if draw.random() < 0.3:
            family, places = "bernoulli", draw.choice([(1,), (1, 0.6), (0.9, 0.8, 0.7, 0.1, 0)])
        ends = draw.choice(["at-horizon", "at-horizon", "at-random"])
        copies = {agent.name: tuple(draw.choice([0, 1, 1, 2, 7]) for _ in range(agent.count)) for agent in agents}
        copies = {name: own for name, own in copies.items() if any(own)}
        try:
            market = cp.Market(agents, horizon, rewards=family, positions=places, ends=ends, share=0.5)
            job = runs_of(market, made, full_copies(agents, copies), draw.randrange(2**60))
            known = job.kernel.name != "reference"
        except cp.errors.CloneproofError:
            continue
        if known:
            found += 1
            yield job


def main(path, number):
    """Play the jobs by that library; one with checks ends the process where memory is not its own."""
    there = ctypes.CDLL(path)
    library.library = lambda: there
    for job in jobs(number):
        job(3, 5)
    print("played", number)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
