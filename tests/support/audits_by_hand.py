"""Audits built by hand from evaluations, for tests of what reports say about them."""

from functools import cache
from pathlib import Path

import cloneproof as cp
from cloneproof.audits.result import Audit, AuditScope, Reason, TriedVectors
from cloneproof.audits.search_result import Witness
from cloneproof.market.market import full_copies

EXAMPLES = Path(__file__).parents[2] / "examples"


def witness(market, mechanism, agent, copies):
    honest = cp.evaluate(market, mechanism).payoff[agent]
    copied = cp.evaluate(market, mechanism, {agent: copies}).payoff[agent]
    everybody = full_copies(market.agents, {agent: copies})
    return Witness(honest, copied, copied - honest, agent, copies, market, everybody)


@cache
def creators_audit():
    """h-etc-r on the creators' market: exploitable, with everything that an audit can hold."""
    market = cp.load_market(EXAMPLES / "creators.toml")
    mechanism = cp.mechanism("h-etc-r", market=market)
    vectors = [(2, 1), (2, 2), (3, 1), (4, 1), (4, 4), *((2**k, 1) for k in range(3, 9)), (256, 256)]
    tried = [witness(market, mechanism, "ana", copies) for copies in vectors]
    tried += [witness(market, mechanism, "cy", copies) for copies in ((2, 1), (4, 1), (256, 1))]
    tried += [witness(market, mechanism, "bo", (2,))]
    return Audit(
        mechanism=mechanism,
        market=market,
        verdict="exploitable",
        worst=witness(market, mechanism, "ana", (256, 1)),
        scope=AuditScope(
            "market",
            tuple(agent.name for agent in market.agents),
            4000,
            0.0,
            engines=("law",),
            tried=(TriedVectors(("ana",), 12, 256), TriedVectors(("cy",), 3, 256), TriedVectors(("bo",), 1, 2)),
        ),
        tolerance=0.0,
        tried=tuple(tried),
        also={"withholding": witness(market, mechanism, "ana", (1, 0))},
        notes=("The trial of 200 rounds cannot explore the 257 arms of 'ana' for 100 rounds each.",),
        seconds=3.2,
    )


def clone_proof_audit():
    """ETC for one agent at the theorem's m; nothing but the least that an audit holds."""
    market = cp.Market([cp.Agent("ana", 2, cp.Discrete([0.25, 0.75], [0.5, 0.5]))], horizon=1000)
    mechanism = cp.mechanism("etc", market=market)
    tried = tuple(witness(market, mechanism, "ana", copies) for copies in ((2, 1), (2, 2), (3, 1)))
    why = Reason(("ana",), "more arms only explore longer", True)
    scope = AuditScope(
        "market", ("ana",), 1000, 0.0, engines=("law",), tried=(TriedVectors(("ana",), 3, 3),), reasons=(why,)
    )
    return Audit(mechanism, market, "clone-proof", tried[0], scope, 0.0, tried)


def undecided_audit():
    """A sampled one, with wide errors, a name that is a script and another that is a formula."""
    odd = '<script>alert("x")</script> & $\\frac{1}{2}$'
    market = cp.Market([cp.Agent(odd, 2, cp.Uniform(0, 1)), cp.Agent("$x_1$", 1, cp.Point(0.5))], horizon=500)
    mechanism = cp.mechanism("thompson")

    def sampled(copies, honest, copied, error):
        low, high = (cp.results.Estimate(v, error, "confidence", "paired runs, 95 %") for v in (honest, copied))
        gain = cp.results.Estimate(copied - honest, error / 2, "confidence", "paired runs, 95 %")
        return Witness(low, high, gain, odd, copies, market, {odd: copies, "$x_1$": (1,)})

    tried = tuple(sampled((k, 1), 210.0, 208 + 2.5 * k, 4.0 + k) for k in range(2, 6))
    why = Reason((odd,), "400 paired runs <each>", False, 14.0)
    scope = AuditScope(
        "market", (odd,), 500, 0.005, engines=("sampled",), tried=(TriedVectors((odd,), 4, 5),), reasons=(why,)
    )
    return Audit(
        mechanism, market, "undecided", tried[-1], scope, 0.005, tried,
    )  # fmt: skip
