"""UCB1 in JAX as one writes it for speed: runs side by side, `lax.scan` over rounds, everything in one program.

`vmap` over runs makes the same program. Arms are the leading axis, so that neighbouring runs are neighbours in memory;
the choice is a mask instead of a gather, and the uniform numbers come from the hardware-friendly generator. float32.
"""

from __future__ import annotations

import time
from itertools import product

import jax
import jax.numpy as jnp
from jax import lax


def runs_of(means, horizon: int, runs: int, unroll: int):
    """A compiled function of a key: the mean reward of the runs."""
    means = jnp.asarray(means, jnp.float32)[:, None]
    arms = means.shape[0]
    clocks = jnp.arange(arms + 1, horizon + 1, dtype=jnp.float32)
    numbers = jnp.arange(arms)[:, None]

    def play(key):
        first = (jax.random.uniform(key, (arms, runs)) < means).astype(jnp.float32)

        def one_run(wins, pulls, root, draw):
            index = wins / pulls + root * lax.rsqrt(pulls)
            mask = (numbers[:, 0] == jnp.argmax(index)).astype(jnp.float32)
            reward = (draw < jnp.sum(mask * means[:, 0])).astype(jnp.float32)
            return wins + mask * reward, pulls + mask

        def step(state, clock):
            key, wins, pulls = state
            key, own = jax.random.split(key)
            draws = jax.random.uniform(own, (runs,))
            root = jnp.sqrt(2.0 * jnp.log(clock))
            wins, pulls = jax.vmap(one_run, in_axes=(1, 1, None, 0), out_axes=1)(wins, pulls, root, draws)
            return (key, wins, pulls), None

        state, _ = lax.scan(step, (key, first, jnp.ones((arms, runs), jnp.float32)), clocks, unroll=unroll)
        return state[1].sum(axis=0).mean()

    return jax.jit(play)


def best_rate(means, horizon: int) -> tuple[float, str]:
    """Rounds per second at the best of some sizes, and which it was."""
    best, which = 0.0, ""
    for kind, runs, unroll in product(("unsafe_rbg", "threefry2x32"), (1 << 15, 1 << 17, 1 << 19), (1, 8)):
        key = jax.random.key(1, impl=kind)
        play = runs_of(means, horizon, runs, unroll)
        play(key).block_until_ready()
        begun = time.perf_counter()
        play(key).block_until_ready()
        rate = runs * horizon / (time.perf_counter() - begun)
        print(f"  jax {kind} {runs} runs, unroll {unroll}: {rate:.3g} rounds a second", flush=True)
        if rate > best:
            best, which = rate, f"{kind}, {runs} runs, unroll {unroll}"
    return best, which
