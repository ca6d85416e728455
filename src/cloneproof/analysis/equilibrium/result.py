"""What iterated best responses come to: a profile from which nobody wants to move, or a cycle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from cloneproof._display import Displayed
from cloneproof._tables import Tabular
from cloneproof.engines.estimate import Estimate, Evaluation
from cloneproof.market.copies import FullCopies
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism

PathEnd = Literal["equilibrium", "cycle", "unfinished"]


@dataclass(frozen=True, repr=False)
class Equilibrium(Displayed, Tabular):
    """What everybody registers if everybody does what pays: the result of `cp.equilibrium`.

    As a table (`to_frame`, `to_markdown`, `to_latex`) it has a row for each agent.

    Attributes
    ----------
    market : Market
        The market.
    mechanism : Mechanism
        The mechanism.
    status : {"equilibrium", "cycle", "unfinished"}
        "equilibrium": nobody gains by other copies within the cap, up to `incentives`. "cycle": best responses came
        back to a profile, `cycle`. "unfinished": there was no time for either.
    copies : dict of str to tuple of int
        What everybody registers in the end; of a cycle, in its first profile.
    incentives : dict of str to Estimate
        The most that each agent would gain by other copies within the cap, with its error; negative where honesty, or
        whatever it registers, is strictly best.
    responses : dict of str to tuple of int
        The copies by which it would.
    evaluation : Evaluation
        Payoffs and regret at `copies`.
    honest : Evaluation
        The same if everybody were honest.
    cycle : tuple of dict
        The profiles of a cycle in their order.
    path : tuple of dict
        Every profile that was passed, from the start on.
    max_copies : int
        The cap: up to so many copies of each original.
    scope : str
        What was tried and how it was computed.
    """

    market: Market
    mechanism: Mechanism
    status: PathEnd
    copies: FullCopies
    incentives: dict[str, Estimate]
    responses: FullCopies
    evaluation: Evaluation
    honest: Evaluation
    cycle: tuple[FullCopies, ...]
    path: tuple[FullCopies, ...]
    max_copies: int
    scope: str

    def __repr__(self) -> str:
        copies = ", ".join(f"{name} {own}" for name, own in list(self.copies.items())[:6])
        more = ", .." if len(self.copies) > 6 else ""
        return (
            f"Equilibrium({self.status!r}, mechanism={self.mechanism.name!r}, copies: {copies}{more},\n"
            f"            regret {self.evaluation.regret.value:,.6g} instead of {self.honest.regret.value:,.6g}, "
            f"incentives up to {self.largest_incentive:.2g} of a payoff)"
        )

    @property
    def largest_incentive(self) -> float:
        """The largest incentive as a part of its agent's payoff, its error included; 0 where nobody has one."""
        parts = [
            incentive.high / self.evaluation.payoff[name].value if self.evaluation.payoff[name].value > 0 else 0.0
            for name, incentive in self.incentives.items()
        ]
        return max(0.0, *parts)

    @property
    def at_cap(self) -> tuple[str, ...]:
        """Agents that register as much as the cap allows of some original: they might want more."""
        return tuple(name for name, own in self.copies.items() if max(own, default=0) == self.max_copies > 1)

    @property
    def price(self) -> float:
        """The regret over that of honest agents: what the copies cost the platform."""
        honest = self.honest.regret.value
        return self.evaluation.regret.value / honest if honest > 0 else float("inf")

    def to_dict(self) -> dict[str, Any]:
        """The equilibrium as data for JSON.

        Returns
        -------
        dict
            status, mechanism, copies, incentives, responses, largest_incentive, regret, honest_regret, payoff, cycle,
            path, at_cap, max_copies and scope.
        """
        return {
            "status": self.status,
            "mechanism": self.mechanism.to_dict(),
            "copies": _listed(self.copies),
            "incentives": {name: incentive.to_dict() for name, incentive in self.incentives.items()},
            "responses": _listed(self.responses),
            "largest_incentive": self.largest_incentive,
            "regret": self.evaluation.regret.to_dict(),
            "honest_regret": self.honest.regret.to_dict(),
            "payoff": {name: payoff.to_dict() for name, payoff in self.evaluation.payoff.items()},
            "cycle": [_listed(profile) for profile in self.cycle],
            "path": [_listed(profile) for profile in self.path],
            "at_cap": list(self.at_cap),
            "max_copies": self.max_copies,
            "scope": self.scope,
        }

    def to_columns(self) -> dict[str, list[Any]]:
        """One row for each agent.

        Returns
        -------
        dict of str to list
            agent, copies, payoff, honest (payoff), incentive and its error.
        """
        names = list(self.copies)
        return {
            "agent": names,
            "copies": [self.copies[name] for name in names],
            "payoff": [self.evaluation.payoff[name].value for name in names],
            "honest": [self.honest.payoff[name].value for name in names],
            "incentive": [self.incentives[name].value for name in names],
            "error": [self.incentives[name].error for name in names],
        }


def _listed(profile: FullCopies) -> dict[str, list[int]]:
    return {name: list(own) for name, own in profile.items()}
