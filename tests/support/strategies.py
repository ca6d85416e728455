"""Random markets for property tests: every kind of prior and reward family, small sizes."""

from hypothesis import strategies as st

import cloneproof as cp
from cloneproof.market import family_names

FAMILIES = tuple(family_names())
unit = st.floats(0, 1, allow_nan=False)
dyadic = st.integers(0, 16).map(lambda k: k / 16)
names = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=8).filter(
    lambda name: bool(name.strip())
)


@st.composite
def discretes(draw):
    values = draw(st.lists(unit, min_size=1, max_size=4, unique=True))
    raw = draw(st.lists(st.integers(1, 9), min_size=len(values), max_size=len(values)))
    return cp.Discrete(values, [weight / sum(raw) for weight in raw])


@st.composite
def uniforms(draw):
    low, high = sorted(draw(st.lists(unit, min_size=2, max_size=2, unique=True)))
    return cp.Uniform(low, high)


priors = st.one_of(
    unit.map(cp.Point),
    discretes(),
    uniforms(),
    st.builds(cp.Beta, st.floats(0.1, 20), st.floats(0.1, 20)),
    st.builds(cp.Empirical, st.lists(unit, min_size=1, max_size=5), st.none() | st.integers(1, 10)),
)


@st.composite
def agents(draw, name):
    originals = draw(st.integers(1, 3))
    if draw(st.booleans()):
        return cp.Agent(name, originals, draw(priors))
    return cp.Agent(name, originals, draw(st.lists(priors, min_size=originals, max_size=originals)))


@st.composite
def markets(draw, max_horizon=60, families=FAMILIES):
    people = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    family = draw(st.sampled_from(families))
    rewards = {"gaussian": {"family": "gaussian", "sd": draw(st.floats(0.01, 2))}}.get(family, family)
    return cp.Market(
        [draw(agents(name)) for name in people],
        horizon=draw(st.integers(1, max_horizon)),
        share=draw(st.floats(0.01, 1)),
        rewards=rewards,
        gap=draw(st.none() | st.floats(0.01, 1)),
        agent_gap=draw(st.none() | st.floats(0.01, 1)),
        max_originals=draw(st.none() | st.integers(3, 6)),
    )


@st.composite
def copies_of(draw, market):
    """Copies of some agents; at least one arm each."""
    chosen = {}
    for agent in market.agents:
        if draw(st.booleans()):
            numbers = draw(st.lists(st.integers(0, 3), min_size=agent.count, max_size=agent.count).filter(any))
            chosen[agent.name] = tuple(numbers)
    return chosen


BINARISING = (
    "thompson",
    "kl-ucb",
    "reservoir",
    "reservoir-streams",
    "reservoir-contest",
    "reservoir-index",
    "reservoir-bars",
)  # these expect rewards in [0, 1]
SMALL = {
    "reservoir": {"rounds": 3, "draws": 2, "threshold": 2},
    "reservoir-streams": {"rotations": 2, "blocks": 3},
    "reservoir-contest": {"rounds": 3, "draws": 2, "threshold": 2, "horizon": 50},
    "reservoir-index": {"draws": 3, "constant": 1.0},
    "reservoir-bars": {"bars": 0.3, "stake": 2, "draws": 2},
    "etc": {"arm_rounds": 2},
    "uniform-etc": {"arm_rounds": 2},
    "h-etc-r": {"agent_rounds": 5, "arm_rounds": 2},
}


def small(name, **options):
    """A mechanism of the catalogue with small parameters."""
    return cp.mechanism(name, **{**SMALL.get(name, {}), **options})
