"""A live market to look at (`make serve-demo`): the service on a temporary SQLite file, and simulated agents.

Seven agents have items of fixed quality, and mallory registers one item four times. The market runs the reservoir and
tests all draws (twelve of each agent's arms, 120 rounds each: half of the season), so that nearly every arm gets enough
rewards to compare it with its siblings. Any parameters are clone-proof; tuned ones would stop at the first good draw
and leave most arms without a reward. Seasons follow one another until Ctrl-C. Only a loopback port is opened, and
nothing is kept.
"""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from cloneproof.serve import calls
from cloneproof.serve.client import Client
from cloneproof.serve.market.terms import MarketSpec
from cloneproof.serve.messages import DecisionReply
from cloneproof.serve.run import LocalService, create_key

MARKET: Final = "feed"
TERMS: Final = MarketSpec(
    market=MARKET,
    mechanism="reservoir",
    horizon=20_000,
    parameters={"rounds": 120, "draws": 12, "choose": "best"},
    share=0.4,
    rewards="bernoulli",
)
QUALITY: Final[dict[str, dict[str, float]]] = {
    "ana": {"ana-news": 0.62, "ana-sports": 0.48},
    "bo": {"bo-music": 0.55, "bo-talks": 0.35, "bo-clips": 0.2},
    "cleo": {"cleo-film": 0.58},
    "dan": {"dan-maps": 0.3, "dan-games": 0.44},
    "eve": {"eve-art": 0.14, "eve-craft": 0.68, "eve-food": 0.4},
    "finn": {"finn-cars": 0.26, "finn-bikes": 0.07, "finn-boats": 0.5},
    "mallory": {"mallory-hit": 0.6, "mallory-hit-2": 0.6, "mallory-hit-3": 0.6, "mallory-hit-4": 0.6},
}
AT_ONCE: Final = 50
PAUSE: Final = 0.1


def main() -> None:
    """Serve and simulate until Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with TemporaryDirectory(prefix="cloneproof-demo-") as folder:
            place = str(Path(folder) / "market.db")
            keys = create_key(place, "platform", None), create_key(place, "auditor", None)
            with LocalService(place) as service, Client(service.address, keys[0]) as api:
                print(f"page:         {service.address}/\nviewer's key: {keys[1]}\nCtrl-C ends it.", flush=True)
                _run_seasons(api)
    except KeyboardInterrupt:
        print("ended; nothing is kept.", flush=True)


def _run_seasons(api: Client) -> None:
    """Run season after season: register, decide, reward a little later, settle."""
    dice = random.Random(2024)
    api.send(calls.create_market(TERMS))
    for agent, arms in QUALITY.items():
        api.send(calls.register_agent(MARKET, agent))
        for arm in arms:
            api.send(calls.register_arm(MARKET, agent, arm))
    season = 1
    while True:
        api.send(calls.start(MARKET))
        for group in range(TERMS.horizon // AT_ONCE):
            names = [f"view-{season}-{group}-{number}" for number in range(AT_ONCE)]
            served = api.send(calls.decide_batch(MARKET, names)).results
            time.sleep(PAUSE)
            clicks = [
                (f"click-{season}-{made.decision}", made, float(dice.random() < QUALITY[made.agent][made.arm]))
                for made in served
                if isinstance(made, DecisionReply)
            ]
            api.send(calls.reward_batch(MARKET, clicks))
        api.send(calls.settle(MARKET))
        season += 1
        api.send(calls.open_season(MARKET, season))


if __name__ == "__main__":
    main()
