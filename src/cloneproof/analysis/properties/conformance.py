"""The conformance suite: what every mechanism must keep, ours or yours.

`check_mechanism(m)` runs the mechanism in small markets of its own making and tries to break it. Nothing is assumed of
the rules but their contract (`cloneproof.mechanisms.rule`), so a rule that remembers, rolls its own dice, looks at
the order in which it is called, or holds a market is found out.
"""

from __future__ import annotations

from dataclasses import dataclass

from cloneproof.analysis.properties.conformance_checks import CHECKS, LONGEST, SHAPES
from cloneproof.errors import ConformanceError, MechanismError
from cloneproof.mechanisms.mechanism import Mechanism


@dataclass(frozen=True)
class CheckResult:
    """One check: its name, whether it was kept, and what was seen."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Conformance:
    """The outcome of the whole conformance suite: the result of `cp.check_mechanism`.

    Attributes
    ----------
    mechanism : str
        The name of the mechanism.
    results : tuple of CheckResult
        One for each check: its name, whether it was kept, and what was seen.
    """

    mechanism: str
    results: tuple[CheckResult, ...]

    @property
    def failed(self) -> list[CheckResult]:
        """The checks that were not kept."""
        return [result for result in self.results if not result.passed]

    @property
    def scope(self) -> str:
        """What was tried."""
        return f"{len(SHAPES)} markets of up to 3 agents and 6 arms, at most {LONGEST} rounds"


def check_mechanism(mechanism: Mechanism) -> Conformance:
    """Run the conformance suite: what every mechanism must keep, ours or yours.

    Parameters
    ----------
    mechanism : Mechanism
        It is run in small markets of the suite's own making.

    Returns
    -------
    Conformance
        The results of all checks, and their scope.

    Raises
    ------
    ConformanceError
        Where a check fails; the message names each and says what was seen.
    MechanismError
        Where it is no mechanism.

    Examples
    --------
    >>> from cloneproof import check_mechanism, mechanism
    >>> len(check_mechanism(mechanism("uniform-etc", arm_rounds=2)).failed)
    0
    """
    if not isinstance(mechanism, Mechanism):
        raise MechanismError(f"expected a mechanism to check, got {mechanism!r}; make one with cp.mechanism(name, ..)")
    results = []
    for name, check in CHECKS.items():
        try:
            problem = next(check(mechanism), None)
        except Exception as error:  # a rule of somebody's own may raise anything
            problem = f"raised {type(error).__name__}: {error}"
        results.append(CheckResult(name, problem is None, problem or "kept"))
    report = Conformance(mechanism.name, tuple(results))
    if report.failed:
        listed = "; ".join(f"{result.name}: {result.detail}" for result in report.failed)
        raise ConformanceError(
            f"mechanism {mechanism.name!r} fails {len(report.failed)} of {len(results)} checks: {listed}"
        )
    return report
