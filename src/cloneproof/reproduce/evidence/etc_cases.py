"""ETC for one agent on one support, at one horizon: which m is asked for, which is enough, and where copies pay."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from cloneproof.analysis.properties.rp_regret import rp_regret
from cloneproof.analysis.properties.trp import Trp, check_trp
from cloneproof.bounds import etc_regret_paper, etc_rounds, trp_arm_rounds
from cloneproof.engines.estimate import Estimate
from cloneproof.market.instance import Instance
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.reproduce.row import Setting
from cloneproof.reproduce.statements.exploration_cost import least_slack, unequal_means

TRIED = 3  # copies of each original, where copies are searched for


@dataclass(frozen=True)
class EtcCase:
    """A support, a number of originals and a horizon."""

    setting: Setting
    support: tuple[float, ...]
    originals: int
    horizon: int

    @property
    def gap(self) -> float:
        """The smallest distance of two values of the support."""
        return min(b - a for a, b in pairwise(self.support))

    @property
    def paper(self) -> int:
        """Theorem 3's m."""
        return etc_rounds(self.originals, self.gap, self.horizon)

    @property
    def enough(self) -> int:
        """The m of our condition, (l - 1) exp(-m gap²) ≤ m / (l T)."""
        return trp_arm_rounds(self.originals, self.gap, self.horizon)

    def etc(self, m: int) -> Mechanism:
        """ETC with that m, as the setting makes it."""
        return self.setting.mechanism("etc", arm_rounds=m)

    def slack(self, m: int) -> Estimate:
        """How much room the honest regret leaves, over all multisets of means."""
        return least_slack(self.etc(m), self.support, self.originals, self.horizon)

    def search_copies(self, m: int) -> Trp:
        """The worst of a search over copies, at the last horizon."""
        return check_trp(self.etc(m), self.support, self.originals, self.horizon, TRIED)

    def truthful(self, m: int) -> bool | None:
        """No copies pay (proven by the slack); some do (a search found them); or open."""
        if self.slack(m).low >= 0:
            return True
        return False if self.search_copies(m).verdict == "violated" else None

    @cached_property
    def safe_from(self) -> int:
        """The smallest m from which on, up to that of our condition, the slack says that no copies pay."""
        m = self.enough
        while m > 1 and self.slack(m - 1).low >= 0:
            m -= 1
        return m

    @cached_property
    def first_failure(self) -> tuple[int, Trp] | None:
        """Going down from there, the first m at which copies pay."""
        searches = ((m, self.search_copies(m)) for m in range(self.safe_from - 1, 0, -1))
        return next(((m, search) for m, search in searches if search.verdict == "violated"), None)

    @cached_property
    def regrets(self) -> list[tuple[Estimate, float]]:
        """The exact regret and the theorem's bound, for every multiset of means."""
        pairs = []
        for means in unequal_means(self.support, self.originals):
            honest = Instance(means, (1,) * self.originals)
            bound = etc_regret_paper([max(means) - mean for mean in means], self.gap, self.horizon)
            pairs.append((rp_regret(self.etc(self.paper), honest, self.horizon), bound))
        return pairs

    @property
    def part_of_bound(self) -> Estimate:
        """The largest part of the theorem's bound that is reached."""
        return max((_part(regret, bound) for regret, bound in self.regrets), key=lambda regret: regret.value)

    @property
    def pulls(self) -> float:
        """The most pulls of a worse arm, from the regret where all worse arms are equally bad."""
        most = 0.0
        for means in unequal_means(self.support, self.originals):
            worse = [max(means) - mean for mean in means if mean < max(means)]
            if len(set(worse)) == 1:
                honest = rp_regret(self.etc(self.paper), Instance(means, (1,) * self.originals), self.horizon)
                most = max(most, honest.high / sum(worse))
        return most


def _part(estimate: Estimate, bound: float) -> Estimate:
    return Estimate(estimate.value / bound, estimate.error / bound, estimate.kind, estimate.method)
