"""Complete dominance certificates for two grids of markets: the hold-out theorems, checked where they can be checked.

Each case is audited against every opponent (`opponents="any"`), its verdict is written as a certificate, and the
independent checker re-derives it from the file. Then the same with a tenth of the theorem's m, where copies may pay.
Run with `make certify`: a case that is in the summary already is not done again, so it can be interrupted.

    python studies/certify.py holdout FOLDER [CASES]   FOLDER/certificates.csv: the theorem's m, gaps 1, 1/2 and 1/5
    python studies/certify.py rates FOLDER [CASES]     FOLDER/certificates_rates.csv: values .002 to .05, with m and W
                                                       of the pairs theorem
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

import cloneproof as cp
from resumable_rows import resume_rows

SUPPORTS = {  # values and weights, by increasing difficulty
    "0 1": ((0.0, 1.0), (0.5, 0.5)),
    "0 .5 1": ((0.0, 0.5, 1.0), (0.5, 0.25, 0.25)),
    ".3 .5 .7": ((0.3, 0.5, 0.7), (0.25, 0.5, 0.25)),
    ".002 .05": ((0.002, 0.05), (0.75, 0.25)),
    ".002 .005 .02": ((0.002, 0.005, 0.02), (0.5, 0.25, 0.25)),
    ".01 .02 .05": ((0.01, 0.02, 0.05), (0.25, 0.5, 0.25)),
}
WIDE, RATES = list(SUPPORTS)[:3], list(SUPPORTS)[3:]
HORIZONS, RATE_HORIZONS = (10**3, 10**4, 10**5, 10**6), (10**6, 10**8)
CUTS = (1, 10)


@dataclass(frozen=True)
class HoldoutCase:
    """An agent with l originals among n, where the platform allows for L originals and K arms, and m is cut."""

    support: str
    horizon: int
    most_originals: int
    originals: int
    max_arms: int
    agents: int
    cut: int

    @property
    def name(self) -> str:
        """For its certificate's file."""
        sizes = f"n{self.agents}-L{self.most_originals}-l{self.originals}-K{self.max_arms}"
        return f"{self.support.replace(' ', '_')}-T{self.horizon}-{sizes}-cut{self.cut}"

    def made(self) -> tuple[cp.Market, cp.Mechanism]:
        """The market and its mechanism."""
        prior = cp.Discrete(*SUPPORTS[self.support])
        others = [cp.Agent(f"other {number}", self.most_originals, prior) for number in range(1, self.agents)]
        agents = [cp.Agent("agent", self.originals, prior), *others]
        market = cp.Market(agents, self.horizon, max_originals=self.most_originals)
        known = {"gap": market.gap, "agent_gap": market.agent_gap, "max_arms": self.max_arms}
        return market, _cut("holdout-h-etc", market, self.cut, known)


@dataclass(frozen=True)
class RateCase:
    """n agents of L originals each, of whom K arms have a score or take part, and m is cut."""

    support: str
    horizon: int
    originals: int
    max_arms: int
    agents: int
    cut: int

    @property
    def name(self) -> str:
        """For its certificate's file."""
        sizes = f"n{self.agents}-L{self.originals}-K{self.max_arms}"
        return f"{self.support.replace(' ', '_')}-T{self.horizon}-{sizes}-cut{self.cut}"

    def made(self) -> tuple[cp.Market, cp.Mechanism]:
        """The market and its mechanism."""
        prior = cp.Discrete(*SUPPORTS[self.support])
        market = cp.Market([cp.Agent(f"agent {i}", self.originals, prior) for i in range(self.agents)], self.horizon)
        return market, _cut("holdout-h-etc", market, self.cut, {"max_arms": self.max_arms})


def _cut(name: str, market: cp.Market, cut: int, known: dict[str, Any]) -> cp.Mechanism:
    made = cp.mechanism(name, market=market, **known)
    fewer = max(1, made.parameters["arm_rounds"] // cut)
    return made if cut == 1 else cp.mechanism(name, market=market, arm_rounds=fewer, **known)


@dataclass(frozen=True)
class HoldoutRow(HoldoutCase):
    """What came of it: `gain` is the largest that is not excluded, or, of an exploitable one, a proven one."""

    arm_rounds: int
    score_rounds: int
    phase: str
    verdict: str
    copies: str
    gain: float
    accepted: bool
    seconds: float


@dataclass(frozen=True)
class RateRow(RateCase):
    """The same."""

    arm_rounds: int
    verdict: str
    copies: str
    gain: float
    accepted: bool
    seconds: float


def holdout_cases() -> Iterator[HoldoutCase]:
    """The grid; cases that share their laws of commitment (which depend on m alone) follow each other."""
    for cut, support, horizon, most in product(CUTS, WIDE, HORIZONS, range(1, 5)):
        for originals, times, agents in product(range(1, most + 1), (1, 2), range(1, 5)):
            yield HoldoutCase(support, horizon, most, originals, times * most, agents, cut)


def rate_cases() -> Iterator[RateCase]:
    """The grid at click rates."""
    for cut, support, horizon, originals in product(CUTS, RATES, RATE_HORIZONS, (2, 3)):
        for times, agents in product((1, 2), (2, 5)):
            yield RateCase(support, horizon, originals, times * originals, agents, cut)


def certify(case: HoldoutCase | RateCase, folder: Path) -> HoldoutRow | RateRow:
    """Audit, write the certificate, have it checked."""
    began = time.perf_counter()
    market, made = case.made()
    audit = cp.audit(market, made, agent=market.agents[0].name, opponents="any")
    accepted = False
    if audit.verdict != "undecided":
        cp.write_certificate(audit, folder / f"{case.name}.json")
        accepted = cp.verify(folder / f"{case.name}.json").accepted
    gain = audit.worst.gain
    found = {
        "arm_rounds": made.parameters["arm_rounds"],
        "verdict": audit.verdict,
        "copies": " ".join(map(str, audit.worst.copies)),
        "gain": gain.low if audit.verdict == "exploitable" else gain.high,
        "accepted": accepted,
        "seconds": round(time.perf_counter() - began, 3),
    }
    if isinstance(case, RateCase):
        return RateRow(*astuple(case), **found)
    phase = "fallback" if case.horizon < case.agents * made.agent.explore else "award"
    return HoldoutRow(*astuple(case), score_rounds=made.parameters["score_rounds"], phase=phase, **found)


def holdout_summary(rows: Sequence[HoldoutRow]) -> list[str]:
    """A table: for each support and horizon what is claimed, and what falls."""
    lines = [
        "| support | T | m for L = 2, 3, 4 | certificates | with an award | clone-proof "
        "| m cut to a tenth: exploitable | undecided | largest proven gain |",
        "|---|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    for support, horizon in product(WIDE, HORIZONS):
        whole, cut = (
            [row for row in rows if (row.support, row.horizon, row.cut) == (support, horizon, c)] for c in CUTS
        )
        rounds = {row.most_originals: row.arm_rounds for row in whole}
        cells = [
            *(support.replace(" ", ", "), f"{horizon:,}"),
            ", ".join(str(rounds[most]) for most in sorted(rounds) if most > 1),
            str(sum(row.accepted for row in whole)),
            str(sum(row.phase == "award" for row in whole)),
            f"{sum(row.verdict == 'clone-proof' for row in whole)} of {len(whole)}",
            *_falls(cut, [row for row in cut if row.verdict == "exploitable"]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def rate_summary(rows: Sequence[RateRow]) -> list[str]:
    """A table of all cases."""
    lines = [
        "| support | T | m for L = 2, 3 | clone-proof and accepted | m cut to a tenth: exploitable "
        "| undecided | largest proven gain |",
        "|---|---:|---|---:|---:|---:|---:|",
    ]
    for key in product(RATES, RATE_HORIZONS):
        here = [row for row in rows if (row.support, row.horizon) == key]
        whole, cut = ([row for row in here if row.cut == size] for size in CUTS)
        rounds = {row.originals: row.arm_rounds for row in whole}
        cells = [
            *(key[0].replace(" ", ", "), f"{key[1]:,}"),
            ", ".join(f"{rounds[most]:,}" for most in sorted(rounds)),
            f"{sum(row.verdict == 'clone-proof' and row.accepted for row in whole)} of {len(whole)}",
            *_falls(cut, [row for row in cut if row.verdict == "exploitable" and row.accepted]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _falls(cut: Sequence[Any], falls: Sequence[Any]) -> list[str]:
    largest = f"{max(row.gain for row in falls):,.4g}" if falls else "none"
    return [f"{len(falls)} of {len(cut)}", str(sum(row.verdict == "undecided" for row in cut)), largest]


def main(which: str, folder: Path, most: int | None = None) -> None:
    """A whole grid, or so many of its cases."""
    wide = which == "holdout"
    kind, case_kind = (HoldoutRow, HoldoutCase) if wide else (RateRow, RateCase)
    rows = resume_rows(
        kind,
        folder / ("certificates.csv" if wide else "certificates_rates.csv"),
        list(holdout_cases() if wide else rate_cases())[:most],
        case_of=lambda row: case_kind(**{field.name: getattr(row, field.name) for field in fields(case_kind)}),
        make=lambda case: certify(case, folder),
        title="certificates",
    )
    print("\n".join((holdout_summary if wide else rate_summary)(rows)))
    print(f"{sum(row.accepted for row in rows)} certificates, {sum(row.seconds for row in rows) / 60:.1f} minutes")
    wrong = [row for row in rows if row.cut == 1 and not (row.verdict == "clone-proof" and row.accepted)]
    wrong += [row for row in rows if row.cut > 1 and row.verdict != "undecided" and not row.accepted]
    for row in wrong[:20]:
        print(f"AGAINST THE THEOREM, please report: {row}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None)
