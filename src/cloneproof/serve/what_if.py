"""What would a copy earn? The audit of a market's own mechanism, under a prior that is given or fitted to the season.

The service runs this file in a process of its own (`python -m cloneproof.serve.what_if`, a task on stdin, an
answer on stdout), below its own priority and for a limited time: an audit is seconds of work, a decision microseconds.
An answer is a line; where the best deviation found is yet to be enclosed in ball arithmetic, what is known comes as a
line before it, for the case that the time is over by then.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence

import msgspec

from cloneproof.analysis.audit.audit import answer as answer_question
from cloneproof.analysis.audit.question import checked_question
from cloneproof.analysis.audit.verdict import Audit, Witness
from cloneproof.analysis.copying.season import ArmRewards, PastAudit, audit_past
from cloneproof.analysis.search import Search
from cloneproof.engines.deadline import Deadline
from cloneproof.errors import CloneproofError
from cloneproof.market import Agent, Discrete, Market, Point
from cloneproof.serve import messages as m
from cloneproof.serve.market.terms import MarketSpec, build_mechanism

_MOST_SHOWN = 200
_ATOMS = 2  # of a fitted prior: somebody is waiting


def answer(task: m.Task, draft: Callable[[m.WhatIfView], None] | None = None) -> m.WhatIfView:
    """Audit the market of a task; `draft` is called with what is known before the best deviation is proven.

    >>> import cloneproof.serve.messages as m
    >>> spec = MarketSpec(market="feed", mechanism="ucb1", horizon=7)
    >>> question = m.WhatIf(m.Belief(0.0, 1.0, 0.5, originals=2, agents=1), max_copies=2)
    >>> view = answer(m.Task(spec, question, [], 60.0))
    >>> view.verdict, view.worst.copies, round(view.worst.gain, 6)
    ('exploitable', [2, 1], 0.25)
    """
    spec, question = task.spec, task.question
    horizon = spec.horizon if question.horizon is None else question.horizon
    mechanism = build_mechanism(spec)
    search = Search(copies=question.max_copies, seconds=task.seconds)
    if question.belief is not None:
        market = _market_of_belief(question.belief, horizon, spec)
        early = None if draft is None else (lambda audited: draft(_view(audited)))
        asked = checked_question(market, mechanism, agent="agent 1")
        return _view(answer_question(asked, search, Deadline(search.seconds), early))
    arms = [ArmRewards(*arm) for arm in task.arms]
    early_past = None if draft is None else (lambda past: draft(_past_view(past, question.agent)))
    past = audit_past(
        arms, mechanism, horizon, spec.share, spec.family, question.copy_odds, _ATOMS, question.agent,
        search=search, draft=early_past,
    )  # fmt: skip
    return _past_view(past, question.agent)


def _past_view(past: PastAudit, agent: str | None) -> m.WhatIfView:
    """The answer under fitted priors: it names the agents for whom there was no time."""
    pairs = [m.PairView(pair.agent, pair.arms, pair.probability, pair.bayes_factor) for pair in past.pairs]
    names = [] if agent is not None else [other.name for other in past.audit.market.agents]
    missed = [name for name in names if name not in past.best]
    words = f"Not looked at, for want of time: {', '.join(missed)}. Ask about one of them."
    notes = [words] * bool(missed) + [f"Assumed: {past.assumed}."]
    view = _view(past.audit, past.best.values(), pairs[:_MOST_SHOWN], notes)
    view.items = [m.OneItemView(item.agent, list(item.arms), item.probability) for item in past.items[:_MOST_SHOWN]]
    return view


def _market_of_belief(belief: m.Belief, horizon: int, spec: MarketSpec) -> Market:
    """All agents alike, with the believed prior."""
    low, high = sorted((belief.low, belief.high))
    chance = belief.chance if belief.high >= belief.low else 1 - belief.chance
    atoms = {low: 1 - chance, high: chance} if low < high else {low: 1.0}
    kept = {value: weight for value, weight in atoms.items() if weight > 0}
    prior = Point(next(iter(kept))) if len(kept) == 1 else Discrete(list(kept), list(kept.values()))
    agents = [Agent(f"agent {number + 1}", belief.originals, prior) for number in range(belief.agents)]
    return Market(agents, horizon, spec.share, "bernoulli" if spec.rewards is None else spec.rewards)


def _view(
    audited: Audit, best: Iterable[Witness] = (), pairs: Sequence[m.PairView] = (), notes: Sequence[str] = ()
) -> m.WhatIfView:
    """The best of each agent first, then those of the worst agent, then the others, the fewest entries first."""
    order = sorted(
        audited.tried,
        key=lambda witness: (witness.agent != audited.worst.agent, sum(witness.copies), witness.copies),
    )
    shown = {(witness.agent, witness.copies): _deviation(witness) for witness in [*best, *order]}
    return m.WhatIfView(
        audited.verdict,
        audited.scope,
        audited.worst.horizon,
        _deviation(audited.worst),
        list(shown.values())[:_MOST_SHOWN],
        [m.PriorView(agent.name, agent.count, list(agent.priors[0].atoms or ())) for agent in audited.market.agents],
        list(pairs),
        [*audited.notes, *notes],
        audited.seconds,
    )


def _deviation(witness: Witness) -> m.Deviation:
    data = witness.to_dict()
    gain = data["gain"]
    return m.Deviation(
        data["agent"],
        data["copies"],
        data["honest"]["value"],
        gain["value"],
        gain["error"],
        gain["kind"],
        data["relative_gain"],
    )


def main() -> None:
    """One task from stdin; answers to stdout, a line each, of which the last counts."""
    os.nice(10)
    task = msgspec.json.decode(sys.stdin.buffer.readline(), type=m.Task)
    threading.Thread(target=_end_with_the_service, daemon=True).start()
    try:
        _write(answer(task, _write))
    except CloneproofError as problem:
        _write(m.WhatIfFailed(str(problem)))


def _end_with_the_service() -> None:
    """End when whoever asked has closed stdin, if only by being killed."""
    while os.read(0, 4096):  # not by way of a buffer, whose lock would be in the way of an orderly end
        pass
    os._exit(1)


def _write(reply: m.WhatIfView | m.WhatIfFailed) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(reply) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
