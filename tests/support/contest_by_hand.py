"""A contest of champions by plain enumeration in fractions: every draw, every coin, every tie, given the means."""

from fractions import Fraction
from functools import cache

from cloneproof.mechanisms.bandits.rule import PriorityInputs


def contest_rewards(means, copies, mechanism, horizon):
    """Each agent's expected reward, given the means of its originals and how often each is registered.

    An agent is (tests so far, count of the current test, counts it has failed with, mean it plays) until it has its
    champion; then (mean, pulls, successes) of the contest. One round at a time, agents in turn in a random order.
    """
    rule, agent, after = mechanism.arm, mechanism.agent, mechanism.skipped_rounds
    count = len(means)

    @cache
    def priority(pulls, ones):
        mean = float(Fraction(ones, pulls)) if pulls else 0.0
        return agent.priority(PriorityInputs(1, 0.0, pulls, mean, 0.5, 0.5, count), *agent.parameters)

    totals = [Fraction(0)] * count
    states = {tuple((0, None, 0, 0, (), 0, 0) for _ in means): Fraction(1)}
    for _ in range(horizon):
        following = {}
        for state, chance in states.items():
            for i, share in _turns(state, agent.tries, priority):
                for change, mean, weight in _round(state[i], means[i], copies[i], rule, after):
                    totals[i] += chance * share * weight * mean
                    for ones, odds in ((1, mean), (0, 1 - mean)):
                        if odds:
                            key = (*state[:i], change(ones), *state[i + 1 :])
                            following[key] = following.get(key, 0) + chance * share * weight * odds
        states = following
    return totals


def _turns(state, explore, priority):
    """Who may be next, and how likely."""
    rounds = [own[0] for own in state]
    if min(rounds) < explore:
        ready = [i for i, number in enumerate(rounds) if number == min(rounds)]
    else:
        values = [priority(own[5], own[6]) for own in state]
        ready = [i for i, value in enumerate(values) if value == max(values)]
    return [(i, Fraction(1, len(ready))) for i in ready]


def _round(own, means, copies, rule, after):
    """The outcomes of a round of one agent, before its coin: (next state by coin, mean that is played, weight).

    own   rounds, mean played, pulls and ones of the current test, failed tests as (ones, mean), pulls and ones of the
          contest; pulls are None once there is a champion
    """
    rounds, mean, pulls, ones, failed, contest, won = own
    if pulls is None:
        counts = rounds >= after
        yield lambda coin: (rounds + 1, mean, None, 0, (), contest + counts, won + counts * coin), mean, Fraction(1)
        return
    if pulls == 0:
        total = sum(copies)
        for each, number in zip(means, copies, strict=True):
            if number:
                yield (
                    lambda coin, each=each: _after_pull(rounds, each, 1, coin, failed, rule),
                    each,
                    Fraction(number, total),
                )
        return
    yield lambda coin: _after_pull(rounds, mean, pulls + 1, ones + coin, failed, rule), mean, Fraction(1)


def _after_pull(rounds, mean, pulls, ones, failed, rule):
    if pulls < rule.tries:
        return (rounds + 1, mean, pulls, ones, failed, 0, 0)
    if rule.threshold is not None and ones >= rule.threshold:
        return (rounds + 1, mean, None, 0, (), 0, 0)
    failed = (*failed, (ones, mean))
    if len(failed) < rule.draws:
        return (rounds + 1, None, 0, 0, failed, 0, 0)
    return (rounds + 1, max(failed, key=lambda test: test[0])[1], None, 0, (), 0, 0)
