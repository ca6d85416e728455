"""Two originals under ETC in doubling epochs: what copies (2, 2) gain in each epoch, and summed up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from cloneproof.analysis.properties.rp_regret import rp_regret
from cloneproof.engines.estimate import Estimate
from cloneproof.market.instance import Instance
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.restart import Restart
from cloneproof.mechanisms.restarts.doubling import Doubling
from cloneproof.reproduce.row import Setting
from cloneproof.reproduce.statements.exploration_cost import exploration_slack

COPIES = (2, 2)
SUMMED = "closed form in floats, summed over epochs"


@dataclass(frozen=True)
class Epochs:
    """Two originals of that gap, up to T = 2^last."""

    setting: Setting
    made: Mechanism
    gap: float
    last: int

    @property
    def means(self) -> tuple[float, float]:
        """Half a gap below 1/2, and above."""
        return (0.5 - self.gap / 2, 0.5 + self.gap / 2)

    def etc(self, epoch: int) -> Mechanism:
        """What runs inside an epoch."""
        return self.setting.mechanism("etc", arm_rounds=doubling_restart(self.made).arm_rounds(epoch))

    def regret(self, epoch: int, copies: tuple[int, int]) -> Estimate:
        """RP-regret within an epoch."""
        return rp_regret(self.etc(epoch), Instance(self.means, copies), epoch_rounds(epoch))

    @cached_property
    def gains(self) -> list[Estimate]:
        """RP-regret with copies minus honest, of every epoch by itself; exactly 0 while both only explore."""
        gains = []
        for epoch in range(1, self.last + 1):
            if 2 * doubling_restart(self.made).arm_rounds(epoch) >= epoch_rounds(epoch):
                gains.append(Estimate(0.0, 0.0, "proven", "exploration only"))
            else:
                gains.append(self.regret(epoch, COPIES) - self.regret(epoch, (1, 1)))
        return gains

    @cached_property
    def margins(self) -> list[Estimate]:
        """The same summed up to the end of every epoch."""
        total, margins = Estimate(0.0, 0.0, "proven", SUMMED), []
        for gain in self.gains:
            total = replace(total - negate(gain), method=SUMMED)
            margins.append(total)
        return margins

    @cached_property
    def slacks(self) -> list[Estimate]:
        """How much room the honest regret leaves in each epoch."""
        return [
            exploration_slack(self.etc(epoch), self.means, epoch_rounds(epoch)) for epoch in range(1, self.last + 1)
        ]

    def safe(self, epoch: int) -> bool:
        """Whether no copies at all can gain within the epoch."""
        only_explores = 2 * doubling_restart(self.made).arm_rounds(epoch) >= epoch_rounds(epoch)
        return only_explores or self.slacks[epoch - 1].low >= 0

    @property
    def every_epoch_safe(self) -> bool | None:
        """Whether no copies pay in any epoch: no where they pay over the whole run, open where neither is known."""
        if all(self.safe(epoch) for epoch in range(1, self.last + 1)):
            return True
        return False if any(margin.high < 0 for margin in self.margins) else None

    @property
    def first_paying(self) -> int:
        """The first power of 2 at which copies pay; 0: none."""
        return next((number for number, margin in enumerate(self.margins, 1) if margin.high < 0), 0)

    @property
    def safe_from(self) -> int:
        """The first epoch from which on all that were computed are safe by themselves."""
        unsafe = [epoch for epoch in range(1, self.last + 1) if not self.safe(epoch)]
        return max(unsafe, default=0) + 1

    @property
    def last_paying(self) -> int:
        """The last power of 2 that was computed and at which copies pay; 0: none.

        What copies gained in early epochs later ones make good slowly: by about (k - l) m D each.
        """
        return max((number for number, margin in enumerate(self.margins, 1) if margin.high < 0), default=0)


def doubling_restart(mechanism: Mechanism) -> Restart:
    """Its epochs; Algorithm 4's where it has none."""
    return mechanism.clearing if mechanism.clearing.flat_epochs else Doubling()


def epoch_rounds(epoch: int) -> int:
    """How long an epoch is."""
    return 2 if epoch == 1 else 2 ** (epoch - 1)


def negate(estimate: Estimate) -> Estimate:
    """Minus the number."""
    return Estimate(-estimate.value, estimate.error, estimate.kind, estimate.method)
