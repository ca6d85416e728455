"""The audit: whether an agent can profit from registering copies, and how sure that is.

1. The question becomes cases, one for each agent and horizon (`question`, `cases`).
2. Best response in each: all vectors of copies up to a cap, ladders 2, 4, 8, .., and whatever more makes the search
   complete; by exact engines where they apply, else by paired samples (`search`).
3. Verdict (`conclusion`): `exploitable` with a witness whose gain is surely above the tolerance; `clone-proof` where
   an argument covers every number of copies (`proof`); else `undecided`. Where the scan theorem covers everything, only
   a few deviations are evaluated (`search.scan_search`).
4. Deviations apart: withholding, two accounts, a cost per copy (`search.other_deviations`); and an agent that knows its
   means before it registers (`search.informed`).
5. Under which delays of rewards the verdict holds (`delays`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, get_args

from cloneproof._checks import whole
from cloneproof.analysis.audit.cases import Auditable
from cloneproof.analysis.audit.conclusion import conclude
from cloneproof.analysis.audit.deadline import Deadline, ProgressCallback
from cloneproof.analysis.audit.delays import under_delays
from cloneproof.analysis.audit.dominance.all_agents import dominance_audit
from cloneproof.analysis.audit.question import checked_budget, checked_question
from cloneproof.analysis.audit.search.exact_search import exact_result, honest_evaluations
from cloneproof.analysis.audit.search.informed import best_informed
from cloneproof.analysis.audit.search.other_deviations import other_deviations
from cloneproof.analysis.audit.search.refinement import refine
from cloneproof.analysis.audit.search.results import SearchResult
from cloneproof.analysis.audit.search.sampling import confirm_heuristics, plays, sampled_results
from cloneproof.analysis.audit.search.scan_search import scan_results, scan_withholding, with_scan_scope
from cloneproof.analysis.audit.verdict import Audit
from cloneproof.engines.estimate import BoundsName
from cloneproof.engines.monte_carlo.devices import DeviceName, checked_device
from cloneproof.engines.monte_carlo.sampler import check_sampling
from cloneproof.errors import EngineError, brief, did_you_mean
from cloneproof.market.market import Market
from cloneproof.mechanisms.online.opening import checked_seed

OpponentsName = Literal["market", "any"]
HONEST_PART = 0.25  # of a budget, for the tree to evaluate honesty; what takes it longer is sampled
DRAFT = "the search is done; there was no time to enclose the best deviation in ball arithmetic"


def audit(
    market: Market,
    mechanism: Auditable,
    *,
    agent: str | None = None,
    max_copies: int = 4,
    opponents: OpponentsName = "market",
    withhold: bool = False,
    tolerance: float = 0.0,
    horizons: str | Sequence[int] | None = None,
    split: bool = False,
    copy_cost: bool = False,
    informed: bool = False,
    budget_seconds: float | None = None,
    runs: int | None = None,
    seed: int = 0,
    bounds: BoundsName = "distribution-free",
    device: DeviceName = "auto",
    progress: ProgressCallback | None = None,
    draft: Callable[[Audit], None] | None = None,
) -> Audit:
    """Try to game a mechanism: the verdict, the best deviation found, and the scope of both.

    Parameters
    ----------
    market : Market
        The platform's problem, with what agents know of their items.
    mechanism : Mechanism, callable or BlackBox
        The mechanism, or a function of the market that makes one: over several horizons it is called for each. Or
        somebody's own policy, `cp.BlackBox(MyPolicy)` or one of `cp.adapters`, of which nothing is known: it is
        sampled, on as many processes as there are cores.
    agent : str, optional
        Whose deviations are tried; everybody's, one agent at a time, if left out.
    max_copies : int, default 4
        Every vector with up to so many copies of each original is tried, besides ladders of 2, 4, 8, .. copies.
    opponents : {"market", "any"}, default "market"
        "market": the others are honest and have their priors. "any": dominance, whoever the others are and whatever
        they register, as long as that does not depend on which of the agent's originals is better, nor on how good
        they are.
    withhold : bool, default False
        Also leave originals out; reported in `Audit.apart`, without a change of the verdict. A verdict by the scan
        theorem covers them.
    tolerance : float, default 0.0
        The gain, relative to the honest payoff, that counts as none.
    horizons : str or sequence of int, optional
        "1:500" or a list, in place of the market's own horizon.
    split : bool, default False
        Also divide the originals among two accounts; reported apart.
    copy_cost : bool, default False
        Also find the fee per copy that would stop the best deviation; in the notes.
    informed : bool, default False
        Also find what an agent gains that knows its means before it registers, and registers what is best at these:
        the average over realisations of the best payoff at each, less the honest payoff. In `Audit.informed`.
    budget_seconds : float, optional
        Stop searching after this time, which agents share; what is then open is `undecided`.
    runs : int, optional
        Pairs of runs for a candidate, where the audit samples.
    seed : int, default 0
        The seed, where the audit samples.
    bounds : {"distribution-free", "asymptotic"}, default "distribution-free"
        What intervals rest on, where the audit samples. "asymptotic" ones hold in the limit of many runs only, and are
        several times narrower while runs are few. The scope and the kind of every estimate say so.
    device : {"auto", "cpu", "gpu"}, default "auto"
        Where runs are drawn, with the same bits. "auto" takes a GPU that is there and plays the mechanism.
    progress : callable, optional
        Called with (done, total, what).
    draft : callable, optional
        Called with the audit as it stands after an exact search, before the best deviation is enclosed in ball
        arithmetic: for those who cannot wait for that.

    Returns
    -------
    Audit
        Its `verdict` is "exploitable", "clone-proof" or "undecided"; `worst` is the deviation that it rests on.

    Raises
    ------
    CloneproofError
        Where an argument makes no sense, or where no engine can evaluate any deviation.

    References
    ----------
    The paper, section 3: a mechanism is replication-proof if honest registration is a dominant strategy.

    Examples
    --------
    >>> from cloneproof import Agent, Discrete, Market, audit, mechanism
    >>> market = Market([Agent("ana", 2, Discrete([0, 1], [0.5, 0.5]))], horizon=7)
    >>> a = audit(market, mechanism("ucb1"))
    >>> a.verdict, a.worst.copies, round(a.worst.gain.value, 9)
    ('exploitable', (2, 1), 0.25)
    >>> audit(market, mechanism("etc", arm_rounds=1)).verdict
    'clone-proof'
    """
    if opponents not in get_args(OpponentsName):
        known = get_args(OpponentsName)
        raise EngineError(
            f"unknown opponents {brief(opponents)}; {did_you_mean(str(opponents), known)}known are {', '.join(known)}"
        )
    seed = checked_seed(seed)
    check_sampling(runs=runs, progress=progress, bounds=bounds)
    runs, device, drawn = whole(runs), checked_device(device), list[str]()
    question = checked_question(market, mechanism, agent, max_copies, tolerance, horizons)
    clock = Deadline(checked_budget(budget_seconds), progress)
    by_theorem = None if question.box is not None else scan_results(question)
    if question.box is not None and (opponents == "any" or withhold or split or informed):
        raise EngineError(
            "expected a mechanism made of rules for opponents='any', withhold, split and informed, got a black box; "
            "leave them out"
        )
    if opponents == "any" and (by_theorem is None or split or copy_cost or informed):
        if horizons is not None or withhold or split or copy_cost or informed:
            raise EngineError(
                "opponents='any' expects neither horizons nor withhold, split, copy_cost or informed; ask for those "
                "against the market"
            )
        return under_delays(dominance_audit(question, clock), question)
    cap, slack, agents = question.max_copies, question.tolerance, question.searched
    sampled = by_theorem is not None or question.box is not None
    within = None if clock.left is None else HONEST_PART * clock.left
    honest = None if sampled else honest_evaluations(agents[0], within)
    results: Sequence[SearchResult]
    late: list[str] = []
    if by_theorem is not None:
        results = by_theorem
    elif honest is None:
        with plays(question.box, clock, device, agents, drawn) as play:
            results = sampled_results(agents, cap, slack, runs, seed, clock, play, bounds)
    else:
        shares = range(len(agents), 0, -1)  # of what is left of the budget, for each agent in turn
        exact = [
            exact_result(cases, *honest, cap, slack, clock.share(parts))
            for cases, parts in zip(agents, shares, strict=True)
        ]
        if not any(result.evaluated for result in exact):
            exact = []  # honesty was within reach of an exact engine, and no deviation
        if draft is not None and exact:
            draft(under_delays(conclude(question, exact, {}, [DRAFT], clock.seconds), question))
        late = refine(exact, slack, clock)
        confirm_heuristics(exact, slack, runs, seed, clock)
        results = exact
        if not exact:
            with plays(None, clock, device, agents, drawn) as play:
                results = sampled_results(agents, cap, slack, runs, seed, clock, play, bounds)
    tried_here = withhold and by_theorem is None
    apart, notes = other_deviations(results, cap, slack, tried_here, split, copy_cost, clock)
    notes += late
    if withhold and by_theorem is not None:
        best, sentences = scan_withholding(by_theorem, slack)
        apart, notes = apart | best, notes + sentences
    knowing, sentences = best_informed(results, cap, slack, clock) if informed else (None, [])
    audited = replace(conclude(question, results, apart, drawn + notes + sentences, clock.seconds), informed=knowing)
    if by_theorem is not None:
        audited = with_scan_scope(audited, question, results)
    return audited if question.box is not None else under_delays(audited, question)
