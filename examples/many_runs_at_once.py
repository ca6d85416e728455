"""A policy that plays many runs in lockstep, as arrays: the same decisions as one run at a time, far quicker.

`UCB1(view)` is an ordinary policy. `UCB1.many(views)` makes one that plays a run for each view; it is used wherever
it is there, and one run is played both ways to see that they agree. `ucb1_in_jax` has the same in JAX.
"""

from __future__ import annotations

import time

import numpy as np

import cloneproof as cp

MARKET = cp.Market(
    [cp.Agent("ana", 1, cp.Point(0.5)), cp.Agent("bo", 2, cp.Discrete([0.3, 0.6], [0.5, 0.5]))], horizon=500
)
RUNS = 200  # pairs


class ManyUCB1:
    """Many runs: a row of each array is a run."""

    def __init__(self, views) -> None:
        self.pulls = np.zeros((len(views), len(views[0].arms)))
        self.sums = np.zeros_like(self.pulls)
        self.rows, self.round = np.arange(len(views)), 0

    def select_many(self):
        """The arm of each run: the first of the highest index."""
        self.round += 1
        with np.errstate(divide="ignore", invalid="ignore"):
            index = self.sums / self.pulls + np.sqrt(2 * np.log(self.round) / self.pulls)
        return np.where(self.pulls == 0, np.inf, index).argmax(axis=1)

    def update_many(self, arms, rewards) -> None:
        """The rewards of these arms."""
        self.pulls[self.rows, arms] += 1
        self.sums[self.rows, arms] += rewards


class UCB1:
    """One run: many with a single row."""

    many = ManyUCB1

    def __init__(self, view) -> None:
        self.one = ManyUCB1([view])

    def select(self) -> int:
        """The arm of this round."""
        return int(self.one.select_many()[0])

    def update(self, arm: int, reward: float) -> None:
        """The reward of that arm."""
        self.one.update_many(np.array([arm]), np.array([reward]))


class OneByOne(UCB1):
    """The same without `many`, to compare."""

    many = None


def ucb1_in_jax():
    """The same policy in JAX (which cloneproof does not install): steps are compiled, states never change in place."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def choose(pulls, sums, round_):
        index = sums / pulls + jnp.sqrt(2 * jnp.log(round_) / pulls)
        return jnp.where(pulls == 0, jnp.inf, index).argmax(axis=1)

    @jax.jit
    def learn(pulls, sums, arms, rewards):
        played = jax.nn.one_hot(arms, pulls.shape[1], dtype=pulls.dtype)
        return pulls + played, sums + played * rewards[:, None]

    class ManyInJax:
        def __init__(self, views) -> None:
            self.pulls = self.sums = jnp.zeros((len(views), len(views[0].arms)))
            self.round = 0

        def select_many(self):
            self.round += 1
            return choose(self.pulls, self.sums, float(self.round))

        def update_many(self, arms, rewards) -> None:
            self.pulls, self.sums = learn(self.pulls, self.sums, jnp.asarray(arms), jnp.asarray(rewards))

    class InJax:
        many = ManyInJax

        def __init__(self, view) -> None:
            self.one = ManyInJax([view])

        def select(self) -> int:
            return int(self.one.select_many()[0])

        def update(self, arm, reward) -> None:
            self.one.update_many(np.array([arm]), np.array([reward]))

    return InJax


def main() -> None:
    """Print what four copies earn ana, both ways."""
    for policy in (UCB1, OneByOne):
        begun = time.perf_counter()
        found = cp.gain(
            MARKET,
            cp.BlackBox(policy),
            "ana",
            (4,),
            search=cp.Search(runs=RUNS),
            stop_when_decided=False,
            stratify=False,
        )
        seconds = time.perf_counter() - begun
        print(f"{policy.__name__:8} gain {found.estimate.value:+.3f}, {found.runs} pairs of runs in {seconds:.1f} s")


if __name__ == "__main__":
    main()
