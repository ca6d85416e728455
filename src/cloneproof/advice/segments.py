"""A recommendation for a market with segments: one for each of them, added up, beside one market for all.

Registrations are for all segments and a mechanism runs in each, so regrets add up, and what is clone-proof in every
segment is so in all together. One market for all pays for the best item on average, where each segment has its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cloneproof.advice.recommendation import AssessedMechanism, PlatformOption, Recommendation
from cloneproof.advice.regret import best_reward
from cloneproof.market.market import Market
from cloneproof.market.segments import MANY
from cloneproof.mechanisms.segments import SegmentedMechanism
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.estimate import Estimate, weighted_sum

POOLED_METHOD = (
    "against the best item of each segment; rates averaged over segments, by draws where they are continuous"
)
SERVED = "segments are served by"


def added_up(market: Market, by_segment: dict[str, Recommendation], for_all: Recommendation | None) -> Recommendation:
    """Return the sum of the advice in each segment; `for_all` is that in one market for all, if there is one."""
    parts = [*by_segment.values()]
    first = parts[0]
    names = [entry.name for entry in first.ranked if all(_named(advice, entry.name) for advice in parts)]
    ranked = sorted(
        (_added(by_segment, name) for name in names), key=lambda entry: (entry.needs != "", entry.regret.value)
    )
    others = {name: why for advice in parts for name, why in advice.others.items()}
    partly = {
        entry.name: "it is not clone-proof, or not known to be, in every segment" for p in parts for entry in p.ranked
    }
    others = {name: why for name, why in (partly | others).items() if name not in names}
    rivals = dict.fromkeys(name for advice in parts for name in advice.candidates)
    whole = replace(
        first,
        market=market,
        ranked=tuple(ranked),
        others=others,
        random_regret=sum(advice.random_regret for advice in parts),
        notes=tuple(dict.fromkeys(note for advice in parts for note in advice.notes)),
        account_floor=_sum([advice.account_floor for advice in parts]),
        settled=bool(ranked) and set(rivals) == {ranked[0].name},
        candidates=tuple(dict.fromkeys([*names[:1], *(row.name for row in ranked if row.name in rivals), *rivals])),
        by_segment=by_segment,
        pooled=_pooled(market, for_all),
        interrupted=any(advice.interrupted for advice in parts),
        left=any(advice.left for advice in parts),
    )
    return replace(whole, options=(*_served(whole), *_ends(parts)))


def part_of(clock: Deadline, place: int, parts: int) -> Deadline:
    """Return the clock of one of several questions, with its share of the progress of all."""
    return replace(clock, report=lambda done, total, what: clock.tell(place * total + done, parts * total, what))


def _named(advice: Recommendation, name: str) -> AssessedMechanism | None:
    return next((entry for entry in advice.ranked if entry.name == name), None)


def _sum(numbers: Sequence[float | None]) -> float | None:
    given = [number for number in numbers if number is not None]
    return sum(given) if len(given) == len(numbers) else None


def _added(by_segment: dict[str, Recommendation], name: str) -> AssessedMechanism:
    """Return a mechanism in all segments together."""
    entries = {segment: one for segment, advice in by_segment.items() if (one := _named(advice, name)) is not None}
    own, rounds = [*entries.values()], [advice.market.horizon for advice in by_segment.values()]
    longest = max(by_segment, key=lambda segment: by_segment[segment].market.horizon)
    exploring = _sum([None if one.exploring is None else one.exploring * n for one, n in zip(own, rounds, strict=True)])
    gains = [one.account_gain for one in own if one.account_gain is not None]
    return replace(
        entries[longest],
        mechanism=SegmentedMechanism.of({segment: one.mechanism for segment, one in entries.items()}),
        regret=weighted_sum([(1.0, one.regret) for one in own]),
        verdict=next((one.verdict for one in own if one.verdict != "clone-proof"), "clone-proof"),
        gain=max(one.gain for one in own),
        exploring=None if exploring is None else exploring / sum(rounds),
        promise=f"{entries[longest].promise} This holds in every segment, and in all together with one list for all.",
        seen=f"In segment {longest!r}: {entries[longest].seen}",
        wrong=(),
        account_gain=weighted_sum([(1.0, gain) for gain in gains]) if len(gains) == len(own) else None,
    )


def _pooled(market: Market, advice: Recommendation | None) -> AssessedMechanism | None:
    """Return the best mechanism of one market for all, its regret against the best original of each segment."""
    if advice is None or not advice.ranked:
        return None
    best, rough = best_reward(advice.market), best_reward(market.pooled(MANY // 4))
    regret, lost = advice.choice.regret, max(0.0, best_reward(market) - best)
    error, method = regret.error + abs(best - rough), f"{regret.method}, {POOLED_METHOD}"
    return replace(advice.choice, regret=Estimate(regret.value + lost, error, "exact", method, True))


def _served(whole: Recommendation) -> list[PlatformOption]:
    """Return what one market for all costs, beside one for each segment."""
    options = [("one market each", whole.ranked[0], True)] if whole.ranked else []
    options += [] if whole.pooled is None else [("one market for all", whole.pooled, False)]
    return [PlatformOption(SERVED, words, row.name, row.regret, row.gain, asked) for words, row, asked in options]


def _ends(parts: Sequence[Recommendation]) -> list[PlatformOption]:
    """Return what the best mechanism of each segment costs at either end, and the best that is proven, in all."""
    options = []
    for asked in (True, False):
        own = [[option for option in advice.options if option.asked is asked] for advice in parts]
        for same in dict.fromkeys(tuple(each[place] for each in own) for place in (0, -1)) if all(own) else ():
            names = " or ".join(dict.fromkeys(other.mechanism for other in same))
            gains = [other.gain for other in same if other.gain is not None]
            gain = max(gains) if len(gains) == len(same) else None
            option = "at random" if "random" in same[0].option else "after a fixed number of rounds"
            regret = weighted_sum([(1.0, other.regret) for other in same])
            options.append(PlatformOption("every segment ends", option, names, regret, gain, asked))
    return options
