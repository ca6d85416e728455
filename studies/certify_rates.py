"""Complete certificates at click rates: the hold-out mechanism with an award and with a contest, values .002 to .05.

As `certify_holdout`, with m and W of the pairs theorem. Then the same with a tenth of m, where copies may pay.
Run with `make certify`; a case that is in the summary already is not done again.

    python studies/certify_rates.py FOLDER [cases]     writes FOLDER/*.json and FOLDER/certificates_rates.csv
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from itertools import product
from pathlib import Path

import cloneproof as cp
from cloneproof.cli.display.output import progress_bar
from resumable_rows import resume_rows

SUPPORTS = {
    ".002 .05": ((0.002, 0.05), (0.75, 0.25)),
    ".002 .005 .02": ((0.002, 0.005, 0.02), (0.5, 0.25, 0.25)),
    ".01 .02 .05": ((0.01, 0.02, 0.05), (0.25, 0.5, 0.25)),
}
MECHANISMS = ("holdout-h-etc", "holdout-kl-ucb")
HORIZONS = (10**6, 10**8)
CUTS = (1, 10)


@dataclass(frozen=True)
class RateCase:
    """n agents of L originals each, of whom K arms have a score or take part, and m is cut."""

    mechanism: str
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
        return f"{self.mechanism}-{self.support.replace(' ', '_')}-T{self.horizon}-{sizes}-cut{self.cut}"


@dataclass(frozen=True)
class RateRow(RateCase):
    """What came of it: `gain` is the largest that is not excluded, or, of an exploitable one, a proven one."""

    arm_rounds: int
    verdict: str
    copies: str
    gain: float
    accepted: bool
    seconds: float


def cases() -> Iterator[RateCase]:
    """The grid."""
    for cut, support, horizon, originals in product(CUTS, SUPPORTS, HORIZONS, (2, 3)):
        for times, agents, mechanism in product((1, 2), (2, 5), MECHANISMS):
            yield RateCase(mechanism, support, horizon, originals, times * originals, agents, cut)


def certify(case: RateCase, folder: Path) -> RateRow:
    """Audit, write the certificate, have it checked."""
    began = time.perf_counter()
    prior = cp.Discrete(*SUPPORTS[case.support])
    market = cp.Market([cp.Agent(f"agent {i}", case.originals, prior) for i in range(case.agents)], case.horizon)
    made = cp.mechanism(case.mechanism, market=market, max_arms=case.max_arms)
    if case.cut > 1:
        fewer = max(1, made.parameters["arm_rounds"] // case.cut)
        made = cp.mechanism(case.mechanism, market=market, max_arms=case.max_arms, arm_rounds=fewer)
    audit = cp.audit(market, made, agent="agent 0", opponents="any")
    accepted = False
    if audit.verdict != "undecided":
        cp.write_certificate(audit, folder / f"{case.name}.json")
        accepted = cp.verify(folder / f"{case.name}.json").accepted
    gain = audit.worst.gain
    return RateRow(
        *astuple(case),
        arm_rounds=made.parameters["arm_rounds"],
        verdict=audit.verdict,
        copies=" ".join(map(str, audit.worst.copies)),
        gain=gain.low if audit.verdict == "exploitable" else gain.high,
        accepted=accepted,
        seconds=round(time.perf_counter() - began, 3),
    )


def summary(rows: Iterable[RateRow]) -> list[str]:
    """The table of the docs."""
    listed = list(rows)
    lines = [
        "| mechanism | support | T | m for L = 2, 3 | clone-proof and accepted | m cut to a tenth: exploitable "
        "| undecided | largest proven gain |",
        "|---|---|---:|---|---:|---:|---:|---:|",
    ]
    for mechanism, support, horizon in product(MECHANISMS, SUPPORTS, HORIZONS):
        here = [row for row in listed if (row.mechanism, row.support, row.horizon) == (mechanism, support, horizon)]
        whole, cut = ([row for row in here if row.cut == size] for size in CUTS)
        rounds = {row.originals: row.arm_rounds for row in whole}
        falls = [row for row in cut if row.verdict == "exploitable" and row.accepted]
        cells = [
            mechanism,
            support.replace(" ", ", "),
            f"{horizon:,}",
            ", ".join(f"{rounds[most]:,}" for most in sorted(rounds)),
            f"{sum(row.verdict == 'clone-proof' and row.accepted for row in whole)} of {len(whole)}",
            f"{len(falls)} of {len(cut)}",
            str(sum(row.verdict == "undecided" for row in cut)),
            f"{max(row.gain for row in falls):,.4g}" if falls else "none",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main(folder: Path, most: int | None = None) -> None:
    """The whole grid, or so many of its cases."""
    with progress_bar() as bar:
        rows = resume_rows(
            RateRow,
            folder / "certificates_rates.csv",
            list(cases())[:most],
            case_of=lambda row: RateCase(**{field.name: getattr(row, field.name) for field in fields(RateCase)}),
            make=lambda case: certify(case, folder),
            track=lambda left: bar.track(left, description="certificates at click rates"),
        )
    print("\n".join(summary(rows)))
    wrong = [row for row in rows if not row.accepted and (row.cut == 1 or row.verdict != "undecided")]
    for row in wrong[:20]:
        print(f"AGAINST THE THEOREM, please report: {row}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
