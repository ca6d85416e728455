"""Assertions for tests: a mechanism, or a policy of one's own, is clone-proof in a market."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cloneproof.audits.audit import audit
from cloneproof.audits.deviations import CopiesOf
from cloneproof.audits.question import Auditable
from cloneproof.audits.result import Audit
from cloneproof.audits.search_result import pays
from cloneproof.audits.smallest import attack_in
from cloneproof.errors import EngineError, MarketError, brief
from cloneproof.evaluation.search import SEARCH, Search
from cloneproof.market.market import Market, full_copies
from cloneproof.market.toml import load_market
from cloneproof.mechanisms.catalogue import mechanism
from cloneproof.mechanisms.mechanism import mechanism_for
from cloneproof.mechanisms.own.black_box import BlackBox, Policy
from cloneproof.runs.deadline import Deadline

__all__ = ["assert_clone_proof"]


def assert_clone_proof(
    policy: Auditable | str | type[Policy],
    market: Market | str | Path,
    *,
    tolerance: float = 0.0,
    allow_undecided: bool = False,
    attack: Mapping[str, Sequence[int]] | None = None,
    search: Search = SEARCH,
    **question: Any,  # noqa: ANN401 (the other arguments of `audit`)
) -> None:
    """Pass silently if registering copies does not pay, by an audit of the market; else raise an AssertionError.

    Parameters
    ----------
    policy : str, Mechanism, callable, BlackBox or class
        What is audited: all that `cp.audit` takes, the name of a mechanism (with its parameters from its theorem), or
        the class of your own policy.
    market : Market, str or Path
        Where it is audited: a market, or the path of a market file.
    tolerance : float, default 0.0
        The gain, relative to the honest payoff, that counts as none.
    allow_undecided : bool, default False
        Whether "undecided" passes too, if none of the deviations tried gains more than the tolerance: surely, or all of
        them together at 99 % if they were sampled. That is what an audit can say of most policies that it only knows by
        their answers. A search that ends before it knows that much fails.
    attack : mapping of str to sequence of int, optional
        An agent's copies. Then only these are tried, exactly or in `search.runs` pairs of runs, and the test passes if
        they do not surely pay: for an attack that was found once, as `cloneproof audit --write-test` writes it.
    search : Search, optional
        How far deviations are searched and how they are sampled. One seed gives one answer on every machine; `seconds`
        would make it depend on the machine.
    **question
        `agent` and `opponents`, as in `cp.audit`.

    Raises
    ------
    AssertionError
        With the attack, its gain and error, the scope of the verdict and the call that repeats it.

    Examples
    --------
    >>> import cloneproof as cp
    >>> market = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5]))], horizon=7)
    >>> assert_clone_proof(cp.mechanism("etc", arm_rounds=1), market)
    >>> assert_clone_proof("ucb1", market)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    AssertionError: expected ucb1 to be clone-proof, got exploitable
    ...
    """
    __tracebackhide__ = True  # pytest shows the test and the message
    asked = load_market(market) if isinstance(market, str | Path) else market
    if attack is not None:
        _check_attack(_auditable(policy), asked, attack, tolerance, search)
        return
    question |= {"tolerance": tolerance, "search": search}
    found = audit(asked, _auditable(policy), **question)
    if found.interrupted:
        raise KeyboardInterrupt
    if not found.passes(allow_undecided):
        raise AssertionError(_message(found, question))


def _check_attack(
    policy: Auditable, market: Market, attack: Mapping[str, Sequence[int]], tolerance: float, search: Search
) -> None:
    """Raise an AssertionError if these copies surely pay."""
    if not isinstance(attack, Mapping) or len(attack) != 1:
        raise MarketError(f"expected an attack by one agent, such as {{'ana': (2, 1)}}, got {brief(attack)}; give one")
    ((agent, copies),) = attack.items()
    played = mechanism_for(policy, market)
    deviation = CopiesOf(agent, full_copies(market.agents, {agent: copies})[agent])
    try:
        found = attack_in(market, played, deviation, search, Deadline(), exactly=True)
    except EngineError:  # no exact engine
        found = attack_in(market, played, deviation, search, Deadline(), exactly=False)
    if pays(found, tolerance):
        raise AssertionError(f"expected copies {deviation.copies} of {agent} not to pay, got {found!r}")


def _auditable(policy: Auditable | str | type[Policy]) -> Auditable:
    """Return what `cp.audit` takes; a class makes policies, and a name is that of a mechanism, for each horizon."""
    if isinstance(policy, str):
        return lambda market: mechanism(policy, market=market)
    return BlackBox(policy) if isinstance(policy, type) else policy


def _message(found: Audit, question: dict[str, Any]) -> str:
    """Return the failure, what the audit says, and the call that repeats it."""
    options = ", ".join(f"{name}={value!r}" for name, value in question.items())
    return (
        f"expected {found.mechanism.name} to be clone-proof, got {found.verdict}\n\n{found}\n\n"
        f"To repeat it: cp.audit(market, policy, {options.replace('search=', 'search=cp.')})"
    )
