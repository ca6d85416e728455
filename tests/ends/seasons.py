"""Logs and seasons by a program of its own, in NumPy alone: nothing of `cloneproof` is imported here.

A market is a table of click rates, providers x items. `log` makes the clicks of a log in which every item is shown
equally often. `lost` plays the advised mechanism in many seasons and returns what each loses against the best item:

reservoir          providers take turns, in an order drawn at the start; a turn draws one of the provider's items
                   evenly, shows it for some rounds, and if it earns enough it is shown in all later rounds
reservoir-contest  each provider's items are tested so by themselves, and its first to pass, or else its best, is its
                   champion; champions compete by the largest q with n kl(clicks / n, q) <= constant ln(horizon). A
                   leader is shown n / 50 times before indices are looked at again, which changes costs by under 1 %
reservoir-index    each provider has as many draws of its items; all draws compete by the largest q with
                   n kl(clicks / n, q) <= constant ln(n), and a season ends after every round with chance 1 / horizon
"""

from __future__ import annotations

import math

import numpy as np


def log(rates, views, dice):
    """Return the rows of a log: provider, item, views, clicks."""
    return [
        (f"seller {a}", f"item {a}-{i}", views, int(dice.binomial(views, rate)))
        for a, own in enumerate(rates)
        for i, rate in enumerate(own)
    ]


def lost(markets, name, numbers, horizon, dice):
    """Return what a mechanism loses in a season of each market (seasons x providers x items)."""
    play = {"reservoir": _reservoir, "reservoir-contest": _contest}[name]
    return horizon * markets.max(axis=(1, 2)) - play(markets, numbers, horizon, dice)


def _tests(markets, numbers, dice):
    """Return the means of the slots that are drawn, and the clicks of their tests: seasons x providers x draws."""
    seasons, providers, items = markets.shape
    drawn = dice.integers(0, items, (seasons, providers, numbers["draws"]))
    means = np.take_along_axis(markets, drawn, axis=2)
    return means, dice.binomial(numbers["rounds"], means)


def _reservoir(markets, numbers, horizon, dice):
    """Clicks expected of the rates that are shown."""
    means, clicks = _tests(markets, numbers, dice)
    seasons, providers, draws = means.shape
    order = np.argsort(dice.random((seasons, providers)), axis=1)[:, :, None]
    turns = [
        np.take_along_axis(table, order, axis=1).transpose(0, 2, 1).reshape(seasons, -1) for table in (means, clicks)
    ]
    rounds = np.minimum(numbers["rounds"], np.maximum(0, horizon - numbers["rounds"] * np.arange(providers * draws)))
    passed = (turns[1] >= numbers["threshold"]) & (rounds == numbers["rounds"])
    chosen = np.where(passed.any(axis=1), passed.argmax(axis=1), turns[1].argmax(axis=1))
    tested = np.where(passed.any(axis=1), passed.argmax(axis=1) + 1, providers * draws)
    shown = np.where(np.arange(providers * draws) < tested[:, None], rounds, 0)
    earned = (turns[0] * shown).sum(axis=1)
    return earned + (horizon - shown.sum(axis=1)) * turns[0][np.arange(seasons), chosen]


def _contest(markets, numbers, horizon, dice):
    means, clicks = _tests(markets, numbers, dice)
    seasons, providers, draws = means.shape
    passed = clicks >= numbers["threshold"]
    chosen = np.where(passed.any(axis=2), passed.argmax(axis=2), clicks.argmax(axis=2))
    champions = np.take_along_axis(means, chosen[:, :, None], axis=2)[:, :, 0]
    tested = np.where(passed.any(axis=2), chosen + 1, draws)
    tests = np.where(np.arange(draws) < tested[:, :, None], means, 0.0).sum(axis=2)
    earned = numbers["rounds"] * (tests + (draws - tested) * champions).sum(axis=1)
    left = np.full(seasons, horizon - numbers["rounds"] * draws * providers - providers)
    earned += champions.sum(axis=1)
    shown, won = np.ones((seasons, providers)), dice.binomial(1, champions).astype(float)
    width = numbers["constant"] * math.log(horizon)
    index, rows = _index(won, shown, width), np.arange(seasons)
    while (rows := rows[left[rows] > 0]).size:
        leader = index[rows].argmax(axis=1)
        rate = champions[rows, leader]
        block = np.minimum(left[rows], np.maximum(1, shown[rows, leader] // 50)).astype(int)
        shown[rows, leader] += block
        won[rows, leader] += dice.binomial(block, rate)
        earned[rows] += block * rate
        left[rows] -= block
        index[rows, leader] = _index(won[rows, leader], shown[rows, leader], width)
    return earned


def _index(won, shown, width):
    """Return the largest q with n kl(mean, q) <= width, by bisection."""
    mean = won / shown
    low, high = mean.copy(), np.ones_like(mean)
    for _ in range(40):
        middle = (low + high) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            up = np.where(mean > 0, mean * np.log(mean / middle), 0.0)
            down = np.where(mean < 1, (1 - mean) * np.log((1 - mean) / (1 - middle)), 0.0)
        above = shown * (up + down) > width
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return low
