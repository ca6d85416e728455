"""Markets with segments: fractions, priors by segment, joint laws, files, and the market of one segment."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

import cloneproof as cp
from cloneproof.advice.regret import expected_best
from cloneproof.market import market_from_toml, market_to_toml
from cloneproof.market.segments import law_from_dict
from cloneproof.mechanisms.catalogue import mechanism_from_dict
from cloneproof.mechanisms.segments import SegmentedMechanism
from cloneproof.runs.tapes import drawn_rates
from support.strategies import names, priors

SEGMENTS = {"code": 0.25, "writing": 0.75}
BY_SEGMENT = {"code": cp.Beta(2, 60), "writing": cp.Point(0.5)}
EXPERT = cp.SegmentVectors([{"code": 0.9, "writing": 0.2}, {"code": 0.3, "writing": 0.2}], [0.5, 0.5])
CLICKS = cp.LogOdds(0.03, spread=0.5, by_segment=0.35)


def market(prior, horizon=1000, **options):
    return cp.Market([cp.Agent("ana", 2, prior)], horizon, segments=SEGMENTS, **options)


@st.composite
def segmented_markets(draw):
    """Markets with up to four segments and every kind of law."""
    keys = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    parts = draw(st.lists(st.integers(1, 9), min_size=len(keys), max_size=len(keys)))
    fractions = {key: part / sum(parts) for key, part in zip(keys, parts, strict=True)}
    unit = st.floats(0, 1)
    vectors = draw(st.lists(st.fixed_dictionaries(dict.fromkeys(keys, unit)), min_size=1, max_size=3))
    laws = st.one_of(
        priors,
        st.fixed_dictionaries(dict.fromkeys(keys, priors)),
        st.just(cp.SegmentVectors(vectors, [1 / len(vectors)] * len(vectors))),
        st.builds(cp.LogOdds, st.floats(0.01, 0.99), st.floats(0, 2), st.floats(0, 2)),
    )
    agents = [cp.Agent("ana", 2, draw(laws)), cp.Agent("bo", prior=[draw(laws), draw(laws)])]
    return cp.Market(agents, draw(st.integers(1, 10**6)), segments=fractions)


@given(segmented_markets())
def test_a_file_of_a_market_with_segments_loses_nothing(given_market):
    assert market_from_toml(market_to_toml(given_market)) == given_market


@given(segmented_markets())
def test_each_segment_is_an_ordinary_market_with_its_fraction_of_the_rounds(whole):
    for name, part in whole.segments.items():
        own = whole.segment(name)
        assert not own.segments
        assert abs(own.horizon - part * whole.horizon) <= 0.5 or own.horizon == 1
        assert all(hasattr(prior, "quantile") for agent in own.agents for prior in agent.priors)


def test_one_prior_is_the_law_in_every_segment_and_a_mapping_has_one_for_each():
    assert market(cp.Beta(2, 3)).segment("code").agents[0].prior == cp.Beta(2, 3)
    assert [market(BY_SEGMENT).segment(name).agents[0].prior for name in SEGMENTS] == list(BY_SEGMENT.values())
    assert market(EXPERT).segment("code").agents[0].prior == cp.Discrete([0.3, 0.9], [0.5, 0.5])
    spread = market(CLICKS).segment("code").agents[0].prior.spread
    assert spread == math.hypot(0.5, 0.35)


def test_a_random_end_stays_random_and_declared_gaps_stay_declared():
    own = market(EXPERT, ends="at-random", gap=0.1).segment("writing")
    assert (own.ends, own.horizon, own.gap) == ("at-random", 750, 0.1)
    assert market(EXPERT).segment("code").gap == pytest.approx(0.6)


def test_the_law_of_a_common_random_end_has_the_stated_mean():
    """Rounds of a segment until one end of chance 1/T: none with the stated chance, else geometric."""
    horizon, part = Fraction(7), Fraction(1, 4)
    last = 1 / horizon
    # Arrivals in this segment before the end, as a sum over the number of rounds in all
    chance = {0: Fraction(0), 1: Fraction(0), 2: Fraction(0)}
    for rounds in range(1, 600):
        ended = last * (1 - last) ** (rounds - 1)
        for k in chance:
            chance[k] += ended * math.comb(rounds, k) * part**k * (1 - part) ** (rounds - k)
    mean = 1 + part * (horizon - 1)
    assert abs(chance[0] - (1 - part * horizon / mean)) < Fraction(1, 10**12)
    assert abs(chance[2] / chance[1] - (1 - 1 / mean)) < Fraction(1, 10**12)


def test_pooled_rates_are_averages():
    assert market(EXPERT).pooled().agents[0].prior.values == pytest.approx((0.225, 0.375))
    assert market(cp.Beta(1, 1)).pooled().agents[0].prior == cp.Beta(1, 1)
    assert market(CLICKS).pooled().agents[0].prior.mean == pytest.approx(CLICKS.mean, rel=1e-4)
    average = market(BY_SEGMENT).pooled().agents[0].prior.mean
    assert average == pytest.approx(0.25 * 2 / 62 + 0.75 * 0.5, rel=1e-4)
    coins = dict.fromkeys(SEGMENTS, cp.Discrete([0, 1], [0.5, 0.5]))
    assert market(coins).pooled().agents[0].prior == cp.Discrete([0, 0.25, 0.75, 1], [0.25] * 4)


def test_the_best_of_pooled_rates_is_that_of_drawn_vectors():
    """15 items in four segments, in 160,000 worlds: what the best on average loses to the best in each."""
    dice, parts = np.random.default_rng(5), dict.fromkeys("abcd", 0.25)
    lost = []
    for _ in range(16):
        item, own = dice.normal(size=(10**4, 15)), dice.normal(size=(4, 10**4, 15))
        rates = scipy.special.expit(scipy.special.logit(0.03) + 0.5 * item + 0.35 * own)
        lost.append(rates.max(axis=2).mean(axis=0) - rates.mean(axis=0).max(axis=1))
    worlds = np.concatenate(lost)
    whole = cp.Market([cp.Agent(name, 3, CLICKS) for name in "vwxyz"], 10**5, segments=parts)
    error, best = 4 * worlds.std() / len(worlds) ** 0.5, expected_best(whole.segment("a"))
    assert abs(best - expected_best(whole.pooled()) - worlds.mean()) < error < 1e-4
    assert abs(best - expected_best(whole.pooled(2**14)) - worlds.mean()) < error


def test_a_pooled_market_is_kept_by_its_file():
    made = market(CLICKS).pooled()
    assert market_from_toml(market_to_toml(made)) == made
    assert sum(made.agents[0].prior.discretised(7).weights) == pytest.approx(1)


@given(st.floats(0.01, 0.99), st.floats(0, 2), st.floats(0, 2), st.integers(1, 40))
def test_log_odds_keep_their_mean_when_made_discrete(median, spread, by_segment, bins):
    law = cp.LogOdds(median, spread, by_segment)
    assert law.discretised(bins).mean == pytest.approx(law.mean, rel=1e-9)
    assert law_from_dict(law.to_dict()) == law
    count = 2000
    average = math.fsum(law.quantile((k + 0.5) / count) for k in range(count)) / count
    assert average == pytest.approx(law.mean, abs=2e-3)


def test_drawn_rates_follow_the_joint_law():
    """Log-odds of an item share a level: correlation .25 / .3725; of 4000 items 1e-6 is five errors of 1/63."""
    drawn = [drawn_rates(market(CLICKS), 0, run) for run in range(2000)]
    pairs = [
        tuple(math.log(rates[name]["ana"][k] / (1 - rates[name]["ana"][k])) for name in SEGMENTS)
        for rates in drawn
        for k in range(2)
    ]
    means = [math.fsum(column) / len(pairs) for column in zip(*pairs, strict=True)]
    moments = [[math.fsum((p[i] - means[i]) * (p[j] - means[j]) for p in pairs) for j in (0, 1)] for i in (0, 1)]
    correlation = moments[0][1] / math.sqrt(moments[0][0] * moments[1][1])
    assert abs(correlation - 0.25 / (0.25 + 0.1225)) < 5 / math.sqrt(len(pairs))
    same = drawn_rates(market(cp.Beta(1, 1)), 0, 0)
    assert same["code"] == same["writing"]
    allowed = {(0.9, 0.2), (0.3, 0.2)}
    vectors = [drawn_rates(market(EXPERT), 0, run) for run in range(40)]
    assert {(each["code"]["ana"][0], each["writing"]["ana"][0]) for each in vectors} == allowed


def test_a_mechanism_by_name_is_tuned_to_each_segment():
    whole = market(BY_SEGMENT)
    made = cp.mechanism("reservoir", market=whole)
    assert isinstance(made, SegmentedMechanism)
    for name in SEGMENTS:
        assert made.in_segment(name) == cp.mechanism("reservoir", market=whole.segment(name))
    assert mechanism_from_dict(made.to_dict()).to_dict() == made.to_dict()
    plain = cp.mechanism("ucb1", market=whole)
    assert not isinstance(plain, SegmentedMechanism)
    assert plain.in_segment("code") is plain
