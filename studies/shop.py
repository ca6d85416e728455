"""A shop's month through the live service: how pages of ten share traffic among sellers, and what the platform loses.

    python studies/shop.py [PAGES] [FOLDER]     # the service's files stay in FOLDER, if one is given; else give "-"
    python studies/shop.py PAGES FOLDER hours   # pages are asked for in batches, and clicks come up to an hour late

Eight sellers have six listings each, of rates Beta(3, 97) on each device. Three of ten visitors come by phone. Pages of
ten places are filled through `POST /slates`, clicks come back before the next page, and the ledger is replayed at the
end. The same sellers have one place a page beside it. What is lost is exact: the attention times the rate of all that
was shown, against the best slate of different sellers on each device.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

import cloneproof as cp
from cloneproof.serve import calls
from cloneproof.serve.client import Client
from cloneproof.serve.market.terms import MarketSpec
from cloneproof.serve.messages import DecisionReply, SlateReply
from cloneproof.serve.offline import replay_all
from cloneproof.serve.run import LocalService, create_key

SELLERS, LISTINGS, PAGES, SEED = 8, 6, 30_000, 42
SECRET = 2**60 + SEED  # of the service's dice, so that a run can be repeated
ATTENTION = (1.0, 0.63, 0.5, 0.43, 0.39, 0.36, 0.33, 0.32, 0.3, 0.29)  # about 1 / log2(1 + place)
DEVICES = {"desk": 0.7, "phone": 0.3}
AT_ONCE = 1  # pages in a call, as clicks of a stream must be in when its block ends
BATCH = 12  # pages of a device that are asked for at a time, where they are shown over the next hours
HOUR = 30_000 / 720  # pages; a click comes after a part of an hour, each as likely
Rates = dict[str, dict[str, dict[str, float]]]  # by device, seller and listing
Clicks = list[tuple[float, tuple[str, DecisionReply, float]]]  # each with the page after which it is in


def drawn_rates(dice: random.Random) -> Rates:
    """Draw the rate of each listing on each device."""
    return {
        device: {
            f"seller-{k}": {f"s{k}-{j}": dice.betavariate(3, 97) for j in range(LISTINGS)}
            for k in range(1, SELLERS + 1)
        }
        for device in DEVICES
    }


def best_page(rates: dict[str, dict[str, float]], attention: tuple[float, ...]) -> float:
    """Return what the best slate of different sellers earns."""
    best = sorted((max(own.values()) for own in rates.values()), reverse=True)
    return sum(weight * rate for weight, rate in zip(attention, best, strict=False))


def whole_batches(rotations: int, fraction: float) -> int:
    """Return rotations of a block of whole batches, of which as many clicks are in at its end as of the given ones.

    Clicks of the last hour are late by half an hour on average.
    """
    step = BATCH // math.gcd(BATCH, SELLERS)
    return step * max(1, round((rotations + fraction * HOUR / 2 / SELLERS) / step))


def terms(name: str, attention: tuple[float, ...], pages: int, batch: int) -> MarketSpec:
    """Return the terms of a month, with numbers tuned to the prior in each segment."""
    mechanism = "reservoir-streams" if len(attention) > 1 else "reservoir"
    segments: dict[str, object] = {}
    for device, fraction in DEVICES.items():
        agents = [cp.Agent(f"seller-{k}", LISTINGS, cp.Beta(3, 97)) for k in range(SELLERS)]
        here = cp.Market(agents, round(fraction * pages), positions=attention)
        numbers = cp.mechanism(mechanism, market=here).parameters
        kept = {key: value for key, value in numbers.items() if value is not None}
        if batch > 1 and "rotations" in kept:
            kept["rotations"] = whole_batches(kept["rotations"], fraction)
        print(f"{name}, {device}: {kept}")
        segments[device] = {"fraction": fraction, "parameters": kept}
    raw = {"market": name, "mechanism": mechanism, "horizon": pages, "segments": segments, "rewards": "bernoulli"}
    rest = {"positions": list(attention), "wait_rounds": pages, "seed": SECRET, "batch": batch}
    return msgspec.convert(raw | rest, MarketSpec)


def visits(api: Client, name: str, pages: int, batch: int, clicks: Clicks) -> Iterator[tuple[str, SlateReply]]:
    """Yield each page with its device, and send the clicks that are due before more pages are asked for."""
    dice, stock = random.Random(SEED), {device: list[SlateReply]() for device in DEVICES}
    devices = ["phone" if dice.random() < DEVICES["phone"] else "desk" for _ in range(pages)]
    for number, device in enumerate(devices):
        if not stock[device]:
            send(api, name, clicks, number)
            left = devices[number:]
            asked = [device] * min(batch, left.count(device)) if batch > 1 else left[:AT_ONCE]
            names = [f"page-{number}-{k}" for k in range(len(asked))]
            for kind, page in zip(asked, api.send(calls.slate_batch(name, names, asked)).results, strict=True):
                assert isinstance(page, SlateReply)
                stock[kind].append(page)
        yield device, stock[device].pop(0)
    send(api, name, clicks, math.inf)


def send(api: Client, name: str, clicks: Clicks, now: float) -> None:
    """Send the clicks that are due, up to as many as a call takes."""
    due = [click for at, click in clicks if at <= now]
    clicks[:] = [(at, click) for at, click in clicks if at > now]
    for first in range(0, len(due), 1000):
        api.send(calls.reward_batch(name, due[first : first + 1000]))


def month(api: Client, name: str, attention: tuple[float, ...], pages: int, rates: Rates, batch: int) -> None:
    """Run a month of pages, and print who was shown and what was lost."""
    dice, clicks = random.Random(SEED + 1), Clicks()
    api.send(calls.create_market(terms(name, attention, pages, batch)))
    for seller, listings in rates["desk"].items():
        api.send(calls.register_agent(name, seller))
        for listing in listings:
            api.send(calls.register_arm(name, seller, listing))
    api.send(calls.start(name))
    earned = best = turns = 0.0
    shown: dict[str, int] = dict.fromkeys(rates["desk"], 0)
    seen: dict[str, int] = dict.fromkeys(rates["desk"], 0)  # pages on which a seller is
    for number, (device, page) in enumerate(visits(api, name, pages, batch, clicks)):
        best += best_page(rates[device], attention)
        rate = sum(sum(own.values()) / LISTINGS for own in rates[device].values()) / SELLERS
        turns += rate * sum(attention[:SELLERS])
        for seller in {one.agent for one in page.decisions}:
            seen[seller] += 1
        for one in page.decisions:
            chance = attention[one.place - 1] * rates[device][one.agent][one.arm]
            earned += chance
            shown[one.agent] += 1
            due = number + (HOUR * dice.random() if batch > 1 else 0.0)
            clicks.append((due, (f"click-{one.decision}", one, float(dice.random() < chance))))
    total = sum(shown.values())
    print(f"{name}: {pages:,} pages, {total:,} impressions")
    print(
        f"  lost {1 - earned / best:.1%} of the best slate's clicks; sellers in turn would lose {1 - turns / best:.1%}"
    )
    progress = api.send(calls.progress(name))
    listings = sum(bool(arm.decisions) for agent in progress.agents for arm in agent.arms)
    print(f"  listings shown: {listings} of {SELLERS * LISTINGS}")
    for seller, top in best_rates(rates):
        part, on = shown[seller] / total, seen[seller] / pages
        print(f"  {seller}: best rates {top}, {part:6.1%} of impressions, on {on:6.1%} of pages")


def best_rates(rates: Rates) -> Iterator[tuple[str, str]]:
    """Yield each seller with the rate of its best listing on each device."""
    for seller in rates["desk"]:
        yield seller, ", ".join(f"{max(rates[device][seller].values()):.3f}" for device in DEVICES)


def main(pages: int, folder: str, batch: int) -> None:
    """Run the month with ten places and with one, and replay both."""
    place, rates = str(Path(folder) / "shop.db"), drawn_rates(random.Random(SEED))
    key = create_key(place, "platform", None)
    with LocalService(place) as service, Client(service.address, key) as api:
        month(api, "ten-places", ATTENTION, pages, rates, batch)
        month(api, "one-place", ATTENTION[:1], pages, rates, batch)
    for found in replay_all(place):
        print(f"{found.market}: replay fits: {found.fits}, {found.entries:,} entries")


if __name__ == "__main__":
    asked = int(float(sys.argv[1])) if len(sys.argv) > 1 else PAGES
    size = BATCH if "hours" in sys.argv else 1
    if len(sys.argv) > 2 and sys.argv[2] != "-":
        main(asked, sys.argv[2], size)
    else:
        with TemporaryDirectory() as made:
            main(asked, made, size)
