"""The route "what would a copy earn?": one audit at a time."""

from __future__ import annotations

from typing import Any

from cloneproof.errors import Refused
from cloneproof.mechanisms.online.level import TICK_BITS
from cloneproof.serve.api.what_if_messages import Task, WhatIf
from cloneproof.serve.commit.commands import Do
from cloneproof.serve.commit.markets import ServedMarkets
from cloneproof.serve.http.keys import Caller
from cloneproof.serve.http.service import Service
from cloneproof.serve.what_if.process import SEARCH_FRACTION, run_audit


async def what_if(service: Service, caller: Caller, params: dict[str, str], body: WhatIf) -> tuple[int, Any]:
    """What would a copy earn? The audit of this market's mechanism, under a given belief or fitted priors."""

    def work(markets: ServedMarkets, now: int) -> Task:
        market = markets.market(params["market"])
        arms = [
            (name, arm.arm, arm.rewards, arm.total / (max(1, arm.rewards) << TICK_BITS))
            for name, count in market.registry.participants(market.season).items()
            for arm in market.registry.agents[name].arms[:count]
        ]
        return Task(market.spec, body, arms, SEARCH_FRACTION * service.audit_seconds)

    if service.audit_lock.locked():
        raise Refused(429, "busy", "another audit is running; try again in a moment")
    async with service.audit_lock:
        task = await service.writer.submit(Do(params["market"], work))
        return 200, await run_audit(task, service.audit_seconds)
