"""(a) How much smaller can m be before a copy pays? The audit against the theorem's condition.

For each market, every m from 1 to the theorem's is audited against every possible set of opponents (dominance, exact):
`exploitable` comes with a witness, `clone-proof` is complete over copies and opponents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from drawing import Panel, figure, logarithmic, save
from matplotlib.colors import ListedColormap

import cloneproof as cp
from cloneproof.bounds import holdout_arm_rounds, holdout_score_rounds
from cloneproof.report.style import look

VERDICTS = ("clone-proof", "undecided", "exploitable")


@dataclass(frozen=True)
class Setting:
    """A market of like agents with two values around 1/2, all equally likely, and how many arms may have a score."""

    gap: float
    originals: int
    horizon: int
    agents: int
    arms: int

    @property
    def theorem(self) -> int:
        """The smallest m of the hold-out theorem's condition."""
        return holdout_arm_rounds(self.originals, self.gap, self.horizon)

    def market(self) -> cp.Market:
        """The market."""
        prior = cp.Discrete([0.5 - self.gap / 2, 0.5 + self.gap / 2], [0.5, 0.5])
        return cp.Market([cp.Agent(f"a{i}", self.originals, prior) for i in range(self.agents)], horizon=self.horizon)

    def verdict(self, m: int) -> str:
        """Whether some copies pay the first agent against some opponents."""
        score = holdout_score_rounds(self.agents, self.gap, self.horizon)
        mechanism = cp.mechanism("holdout-h-etc", arm_rounds=m, score_rounds=score, max_arms=self.arms)
        return cp.audit(self.market(), mechanism, agent="a0", opponents="any").verdict

    @cache  # noqa: B019 (a few settings, each asked for in several lists)
    def verdicts(self) -> tuple[str, ...]:
        """The verdicts at m = 1, 2, .. up to the theorem's."""
        return tuple(self.verdict(m) for m in range(1, self.theorem + 1))


def first_safe(verdicts: Sequence[str]) -> int:
    """The smallest m from which on every verdict is clone-proof."""
    return max((m for m, verdict in enumerate(verdicts, 1) if verdict != "clone-proof"), default=0) + 1


def islands(verdicts: Sequence[str]) -> int:
    """How many stretches of m below the first safe one are clone-proof; 0 where copies pay up to a point only."""
    below = verdicts[: first_safe(verdicts) - 1]
    return sum(here == "clone-proof" and (k == 0 or below[k - 1] != here) for k, here in enumerate(below))


def settings(quick: bool) -> dict[str, list[Setting]]:
    """One list for each of what is varied, all around gap 1/2, L = 2, n = 2, K = 2L."""
    if quick:
        return {"horizon": [Setting(0.75, 2, 10**3, 2, 4), Setting(0.75, 2, 10**4, 2, 4)]}
    return {
        "horizon": [Setting(0.5, 2, 10**p, 2, 4) for p in range(3, 10)],
        "gap": [Setting(gap, 2, 10**6, 2, 4) for gap in (0.25, 0.5, 0.75, 0.9)],
        "originals": [Setting(0.5, many, 10**6, 2, 2 * many) for many in (2, 3, 4)],
        "agents": [Setting(0.5, 2, 10**6, n, 4) for n in (1, 2, 3, 5)],
        "arms": [Setting(0.5, 2, 10**6, 2, arms) for arms in (2, 3, 4, 5, 6)],
    }


def main(quick: bool, folder: str) -> dict[str, object]:
    """Draw the figure; give back the table."""
    by_name = {
        name: [(setting, setting.verdicts()) for setting in members] for name, members in settings(quick).items()
    }
    rows = [
        f"{name:9} gap {setting.gap:4} L {setting.originals} T 10^{len(str(setting.horizon)) - 1} n {setting.agents} "
        f"K {setting.arms}: theorem {setting.theorem:3}, audit {first_safe(verdicts):3}, "
        f"ratio {first_safe(verdicts) / setting.theorem:.2f}, "
        f"clone-proof islands below {islands(verdicts)}, undecided {verdicts.count('undecided')}"
        for name, members in by_name.items()
        for setting, verdicts in members
    ]
    with figure("smaller-m", 2) as (made, (left, right)):
        _curves(left, by_name["horizon"])
        _strips(right, [pair for members in by_name.values() for pair in members] if quick else _shown(by_name))
        save(made, folder, "smaller-m")
    return {"rows": rows}


def _shown(by_name: dict[str, list[tuple[Setting, Sequence[str]]]]) -> list[tuple[Setting, Sequence[str]]]:
    """Strips that fit under one another: K first, then L and n."""
    return [*by_name["arms"], *by_name["originals"][1:], *by_name["agents"][2:]]


def _curves(axes: Panel, members: list[tuple[Setting, Sequence[str]]]) -> None:
    horizons = [setting.horizon for setting, _ in members]
    style = look("holdout-h-etc")
    theorem, audit = [setting.theorem for setting, _ in members], [first_safe(verdicts) for _, verdicts in members]
    axes.plot(horizons, theorem, color="#5b6475", linestyle=(0, (5, 2)), marker="o", markersize=4)
    axes.plot(horizons, audit, color=style.colour, marker="o", markersize=4)
    axes.annotate("the theorem's condition", (horizons[-1], theorem[-1]), (-8, -2), textcoords="offset points",
                  ha="right", va="bottom", color="#5b6475")  # fmt: skip
    axes.annotate("clone-proof from here on\n(exact audit)", (horizons[-1], audit[-1]), (-2, -66),
                  textcoords="offset points", ha="right", va="top", color=style.ink)  # fmt: skip
    logarithmic(axes.xaxis, horizons)
    axes.set_ylim(0, max(theorem) * 1.12)
    axes.set_xlabel("horizon T (rounds)")
    axes.set_ylabel("exploration m (rounds per arm)")
    axes.set_title("values ¼ and ¾, two originals, n = 2, K = 4")


def _strips(axes: Panel, members: list[tuple[Setting, Sequence[str]]]) -> None:
    widest = max(len(verdicts) for _, verdicts in members)
    colours = ListedColormap(["#d8efe9", "#ddcc77", "#cc6677"])
    for row, (setting, verdicts) in enumerate(members):
        numbers = [[VERDICTS.index(verdict) for verdict in verdicts]]
        axes.imshow(numbers, extent=(0.5, len(verdicts) + 0.5, row + 0.4, row - 0.4), aspect="auto", cmap=colours,
                    vmin=0, vmax=2)  # fmt: skip
        axes.plot([setting.theorem + 0.5] * 2, [row - 0.4, row + 0.4], color="#1d2433", linewidth=1.4)
    labels = [f"L={setting.originals}  K={setting.arms}  n={setting.agents}" for setting, _ in members]
    axes.set_yticks(range(len(members)), labels)
    axes.set_ylim(len(members) - 0.4, -0.6)
    axes.set_xlim(0, widest * 1.12)
    axes.grid(False)
    axes.set_xlabel("exploration m (rounds per arm)")
    axes.set_title("where copies pay (T = 10⁶)")
    row = min(3, len(members) - 1)
    setting, verdicts = members[row]
    axes.text((1 + first_safe(verdicts)) / 2, row, "copies pay", color="white", ha="center", va="center")
    axes.text(
        (first_safe(verdicts) + setting.theorem) / 2, row, "clone-proof", color="#255d54", ha="center", va="center"
    )
    axes.text(setting.theorem + 1, row, "theorem's m", color="#1d2433", va="center")
