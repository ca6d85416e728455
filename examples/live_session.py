"""A feed in front of a session: views are decided at once, clicks come late, some never, some twice.

Everything a mechanism needs to know is who registered how many arms. The world below knows which clips are good; the
session never learns more than the rewards.
"""

from __future__ import annotations

import random

import cloneproof as cp

CLIPS = {("ana", 0): 0.8, ("ana", 1): 0.2, ("bo", 0): 0.6}
DELAY = 25  # views until a click is reported


def main() -> None:
    """Serve 3,000 views, restart in the middle, print the ledger's totals."""
    world = random.Random(7)
    live = cp.session(
        cp.mechanism("reservoir", rounds=60, draws=4, threshold=42),
        registered={"ana": 2, "bo": 1},
        horizon=3000,
        seed=1,
        share=0.4,
        rewards="bernoulli",
    )
    phases: dict[str, int] = {}
    reports: list[tuple[int, int, float]] = []
    for view in range(3000):
        if view == 1500:  # the server restarts: saved, and restored to the bit
            live = cp.Session.from_json(live.to_json())
        decision = live.decide()
        phases[decision.phase] = phases.get(decision.phase, 0) + 1
        click = float(world.random() < CLIPS[decision.agent, decision.arm])
        reports.append((view + world.randrange(DELAY), decision.id, click))
        for due, number, value in [report for report in reports if report[0] <= view]:
            live.reward(number, value)
            if world.random() < 0.1:
                live.reward(number, value)  # reported twice, counted once
            reports.remove((due, number, value))
    print("rounds:", ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items())))
    print("paid:  ", ", ".join(f"{name} {amount:.1f}" for name, amount in live.payoff.items()))
    print(f"{len(live.pending)} clicks are still on their way")


if __name__ == "__main__":
    main()
