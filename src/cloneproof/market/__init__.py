"""Markets: priors, reward families, agents, copies, and the files that describe them."""

from cloneproof.market.market import Agent, Copies, Market, arms_of, full_copies
from cloneproof.market.priors import Beta, Discrete, Empirical, Mixture, Point, Prior, Uniform
from cloneproof.market.rewards import BOUNDED, RewardFamily, family_names, reward_family
from cloneproof.market.segments import LogOdds, SegmentVectors
from cloneproof.market.toml import load_market, market_from_toml, market_to_toml, save_market

__all__ = [
    "BOUNDED", "Agent", "Beta", "Copies", "Discrete", "Empirical", "LogOdds", "Market", "Mixture", "Point", "Prior",
    "RewardFamily", "SegmentVectors", "Uniform", "arms_of", "family_names", "full_copies", "load_market",
    "market_from_toml", "market_to_toml", "reward_family", "save_market",
]  # fmt: skip
