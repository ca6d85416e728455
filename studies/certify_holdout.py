"""Complete dominance certificates for a grid of markets: the hold-out theorem, checked where it can be checked.

Each case is audited against every opponent (`opponents="any"`), its verdict is written as a certificate, and the
independent checker re-derives it from the file. Then the same with a tenth of the theorem's m, where copies may pay.
Run with `make certify`: a case that is in the summary already is not done again, so it can be interrupted.

    python studies/certify_holdout.py FOLDER [cases]     writes FOLDER/*.json and FOLDER/certificates.csv
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

SUPPORTS = {  # values and weights, by increasing difficulty: gaps 1, 1/2 and 1/5
    "0 1": ((0.0, 1.0), (0.5, 0.5)),
    "0 .5 1": ((0.0, 0.5, 1.0), (0.5, 0.25, 0.25)),
    ".3 .5 .7": ((0.3, 0.5, 0.7), (0.25, 0.5, 0.25)),
}
HORIZONS = (10**3, 10**4, 10**5, 10**6)
MOST_AGENTS, MOST_ORIGINALS = 4, 4
CUTS = (1, 10)


@dataclass(frozen=True)
class Case:
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
        support = self.support.replace(" ", "_")
        sizes = f"n{self.agents}-L{self.most_originals}-l{self.originals}-K{self.max_arms}"
        return f"{support}-T{self.horizon}-{sizes}-cut{self.cut}"


@dataclass(frozen=True)
class Row(Case):
    """What came of it: `gain` is the largest that is not excluded, or, of an exploitable one, a proven one."""

    arm_rounds: int
    score_rounds: int
    phase: str
    verdict: str
    copies: str
    gain: float
    accepted: bool
    seconds: float


def cases() -> Iterator[Case]:
    """The grid; cases that share their laws of commitment (which depend on m alone) follow each other."""
    for cut, support, horizon, most in product(CUTS, SUPPORTS, HORIZONS, range(1, MOST_ORIGINALS + 1)):
        for originals, times, agents in product(range(1, most + 1), (1, 2), range(1, MOST_AGENTS + 1)):
            yield Case(support, horizon, most, originals, times * most, agents, cut)


def certify(case: Case, folder: Path) -> Row:
    """Audit, write the certificate, have it checked."""
    began = time.perf_counter()
    prior = cp.Discrete(*SUPPORTS[case.support])
    agent = cp.Agent("agent", case.originals, prior)
    others = [cp.Agent(f"other {number}", case.most_originals, prior) for number in range(1, case.agents)]
    market = cp.Market([agent, *others], case.horizon, max_originals=case.most_originals)
    known = {"gap": market.gap, "agent_gap": market.agent_gap, "max_arms": case.max_arms}
    mechanism = cp.mechanism("holdout-h-etc", market=market, **known)
    if case.cut > 1:
        fewer = max(1, mechanism.parameters["arm_rounds"] // case.cut)
        mechanism = cp.mechanism("holdout-h-etc", market=market, arm_rounds=fewer, **known)
    audit = cp.audit(market, mechanism, agent="agent", opponents="any")
    accepted = False
    if audit.verdict != "undecided":
        path = folder / f"{case.name}.json"
        cp.write_certificate(audit, path)
        accepted = cp.verify(path).accepted
    gain = audit.worst.gain
    return Row(
        *astuple(case),
        arm_rounds=mechanism.parameters["arm_rounds"],
        score_rounds=mechanism.parameters["score_rounds"],
        phase="fallback" if case.horizon < case.agents * mechanism.agent.explore else "award",
        verdict=audit.verdict,
        copies=" ".join(map(str, audit.worst.copies)),
        gain=gain.low if audit.verdict == "exploitable" else gain.high,
        accepted=accepted,
        seconds=round(time.perf_counter() - began, 3),
    )


def summary(rows: Iterable[Row]) -> list[str]:
    """The table of the docs: for each support and horizon what is claimed, and what falls."""
    listed = list(rows)
    lines = [
        "| support | T | m for L = 2, 3, 4 | certificates | with an award | clone-proof "
        "| m cut to a tenth: exploitable | undecided | largest proven gain |",
        "|---|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    for support, horizon in product(SUPPORTS, HORIZONS):
        here = [row for row in listed if (row.support, row.horizon) == (support, horizon)]
        whole, cut = ([row for row in here if row.cut == size] for size in CUTS)
        if not here:
            continue
        rounds = {row.most_originals: row.arm_rounds for row in whole}
        falls = [row for row in cut if row.verdict == "exploitable"]
        cells = [
            support.replace(" ", ", "),
            f"{horizon:,}",
            ", ".join(str(rounds[most]) for most in sorted(rounds) if most > 1),
            str(sum(row.accepted for row in whole)),
            str(sum(row.phase == "award" for row in whole)),
            f"{sum(row.verdict == 'clone-proof' for row in whole)} of {len(whole)}",
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
            Row,
            folder / "certificates.csv",
            list(cases())[:most],
            case_of=lambda row: Case(**{field.name: getattr(row, field.name) for field in fields(Case)}),
            make=lambda case: certify(case, folder),
            track=lambda left: bar.track(left, description="certificates"),
        )
    print("\n".join(summary(rows)))
    print(f"{sum(row.accepted for row in rows)} certificates, {sum(row.seconds for row in rows) / 60:.1f} minutes")
    wrong = [row for row in rows if row.cut == 1 and not (row.verdict == "clone-proof" and row.accepted)]
    for row in wrong[:20]:
        print(f"AGAINST THE THEOREM, please report: {row}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
