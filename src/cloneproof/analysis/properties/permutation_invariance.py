"""Permutation invariance (the paper's PI): relabelling the arms relabels the run, and changes nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

from cloneproof.analysis.properties.conformance_checks import ERROR_RATE, TIE_SEEDS, relabelled_run, ties_are_uniform
from cloneproof.errors import MechanismError
from cloneproof.mechanisms.mechanism import Mechanism

SCOPE = (
    "one market of 3 agents with 3, 1 and 2 arms, all 6 orders of the agents with their arms reversed, one tape of "
    f"rewards; and four equal arms in 2 agents over up to {TIE_SEEDS} seeds, whose shares must be 1/4 (false alarms: "
    f"at most {ERROR_RATE:g} of checks)"
)


@dataclass(frozen=True)
class PermutationInvariance:
    """What a relabelling changed. `problems` is empty where nothing was found, which is no proof beyond `scope`."""

    mechanism: str
    declared: bool
    problems: tuple[str, ...]
    scope: str = SCOPE

    @property
    def holds(self) -> bool:
        """Whether no relabelling that was tried changed anything."""
        return not self.problems

    @property
    def verdict(self) -> str:
        """In words."""
        return "holds within what was tried" if self.holds else "violated"


class _Claiming(Mechanism):
    """The same mechanism, whatever it declares: the conformance checks pass over one that declares it is not PI."""

    @property
    def permutation_invariant(self) -> bool:
        return True


def check_permutation_invariance(mechanism: Mechanism) -> PermutationInvariance:
    """Relabel agents and arms, and compare the runs; and see whether ties are broken uniformly (reading, decision 12).

    The paper's PI allows ties to be broken by label; we ask for uniform ties, so that equal arms are equal in law. A
    mechanism that declares that it goes by the order of registration is tried all the same.

    Parameters
    ----------
    mechanism : Mechanism
        The platform's algorithm.

    Returns
    -------
    PermutationInvariance
        With `verdict`, the problems found and the scope of the search.

    References
    ----------
    The paper, section 4, permutation invariance (PI).

    Examples
    --------
    >>> from cloneproof.mechanisms import mechanism
    >>> checked = check_permutation_invariance(mechanism("etc", arm_rounds=2, order="index"))
    >>> checked.verdict, checked.declared
    ('violated', False)
    """
    if not isinstance(mechanism, Mechanism):
        raise MechanismError(f"expected a mechanism to check, got {mechanism!r}; make one with cp.mechanism(name, ..)")
    claiming = _Claiming(**{each.name: getattr(mechanism, each.name) for each in fields(Mechanism)})
    checks: tuple[Callable[[Mechanism], Iterator[str]], ...] = (relabelled_run, ties_are_uniform)
    problems = [problem for check in checks if (problem := next(check(claiming), None)) is not None]
    return PermutationInvariance(mechanism.name, mechanism.permutation_invariant, tuple(problems))
