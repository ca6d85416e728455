"""LiteLLM's adaptive router as a black box, and a season in its place: `pip install 'cloneproof[litellm]'`."""

from __future__ import annotations

import inspect
import json
import os
import random
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal

from cloneproof._lib.checks import known, number_in
from cloneproof._lib.files import write_whole
from cloneproof.errors import EngineError, PausedError, brief
from cloneproof.market.market import Agent, Market
from cloneproof.market.priors import Beta, Prior
from cloneproof.mechanisms import Session
from cloneproof.mechanisms.catalogue import mechanism
from cloneproof.mechanisms.own.black_box import BlackBox, View
from cloneproof.mechanisms.session import session
from cloneproof.mechanisms.session_file import Decision

GENERAL: Final = "general"  # LiteLLM's type of a request that is of no other type


def optional(module: str, extra: str) -> ModuleType:
    """Import the module, or raise an error that says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise  # it is installed but broken: the message of the package says more
        raise EngineError(
            f"expected the package {module.partition('.')[0]!r}, which is not installed; "
            f"run: pip install 'cloneproof[{extra}]'"
        ) from None


def litellm_router(
    costs: Mapping[str, float] | None = None,
    preferences: Mapping[str, Any] | None = None,
    quality_weight: float | None = None,
    name: str = "",
    exploration_rate: float = 1.0,
    evaluation_priors: Mapping[tuple[str, str], tuple[float, float]] | None = None,
    evaluation_prior_max_mass: float = 50.0,
) -> BlackBox:
    """Return a black box that routes by LiteLLM's own code: `pick_best` on `initial_cell`, updated by `apply_delta`.

    This is `litellm.router_strategy.adaptive_router.bandit`, Thompson sampling for each type of request, of the LiteLLM
    that is installed; the name says which. An arm is the name of a model, an agent its provider, and the segments of a
    market are LiteLLM's types of request ("code_generation", "writing", ..); without segments all are "general". A
    reward of 1 counts as a satisfied user (alpha + 1), a reward of 0 as a complaint (beta + 1). How LiteLLM reads such
    signals out of conversations, most of whose turns have none, is left out.

    Parameters
    ----------
    costs : mapping of str to float, optional
        What the models of each agent cost, in any unit; nothing for agents left out.
    preferences : mapping of str to AdaptiveRouterPreferences, optional
        The quality tier and the strengths that each agent declares; tier 2 and none for agents left out, as in LiteLLM.
    quality_weight : float, optional
        How much quality counts, from 0 to 1, and cost the rest; LiteLLM's default (.7) if left out.
    name : str, optional
        What tables call it.
    exploration_rate : float, default 1.0
        The chance of a Thompson sample; other requests go by means. Newer than 1.109; LiteLLM's README recommends .05.
    evaluation_priors : mapping of (str, str) to (float, float), optional
        Successes and failures of evaluations, by type of request and agent, which priors start from; likewise.
    evaluation_prior_max_mass : float, default 50.0
        The most that such a prior weighs.

    Examples
    --------
    ::

        box = cloneproof.adapters.litellm_router(costs={"ana": 0.5, "bo": 0.4})
    """
    types = _litellm("litellm.types.router")
    for agent, each in (preferences or {}).items():
        if not isinstance(each, types.AdaptiveRouterPreferences):
            raise EngineError(
                f"expected litellm.types.router.AdaptiveRouterPreferences for {agent!r}, got {each!r}; make them"
            )
    for agent, cost in (costs or {}).items():
        number_in(cost, f"the cost of {agent!r}", 0, error=EngineError)
    weights = types.AdaptiveRouterWeights()
    if quality_weight is not None:
        quality = number_in(quality_weight, "quality_weight", 0, 1, EngineError)
        weights = types.AdaptiveRouterWeights(quality=quality, cost=1.0 - quality)
    options: dict[str, Any] = {"quality_weight": weights.quality, "cost_weight": weights.cost}
    if number_in(exploration_rate, "exploration_rate", 0, 1, EngineError) != 1:
        options["exploration_rate"] = exploration_rate
    bandit, read = _litellm("litellm.router_strategy.adaptive_router.bandit"), version("litellm")
    newer = "exploration_rate" in inspect.signature(bandit.pick_best).parameters
    if not newer and (len(options) > 2 or evaluation_priors):
        raise EngineError(
            f"expected a LiteLLM that has exploration_rate and evaluation_priors, got {read}; install a newer one"
        )
    priors = dict(evaluation_priors or {}), evaluation_prior_max_mass
    name = name or f"LiteLLM {read}'s adaptive router"
    return BlackBox(partial(_LitellmPolicy, dict(costs or {}), dict(preferences or {}), options, priors), name=name)


def _litellm(module: str) -> ModuleType:
    """Import a module of LiteLLM, which would fetch a list of prices when it is first imported."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    return optional(module, extra="litellm")


class _LitellmPolicy:
    def __init__(
        self,
        costs: Mapping[str, float],
        preferences: Mapping[str, Any],
        options: Mapping[str, float],
        priors: tuple[Mapping[tuple[str, str], tuple[float, float]], float],
        view: View,
    ) -> None:
        self.bandit = _litellm("litellm.router_strategy.adaptive_router.bandit")
        types = _litellm("litellm.types.router")
        self.options = options
        known_types = {each.value: each for each in types.RequestType}
        for segment in view.segments:
            known(segment, known_types, "type of request of LiteLLM", EngineError)
        usual = types.AdaptiveRouterPreferences(quality_tier=2)
        self.costs = {arm: costs.get(owner, 0.0) for arm, owner in enumerate(view.owner)}
        self.cells = {
            segment: {
                arm: self.bandit.initial_cell(preferences.get(owner, usual), known_types[segment])
                for arm, owner in enumerate(view.owner)
            }
            for segment in view.segments or (GENERAL,)
        }
        for (segment, name), counts in priors[0].items():
            own = self.cells[known(segment, self.cells, "type of request with evaluations", EngineError)]
            for arm in (arm for arm in own if view.owner[arm] == name):
                own[arm] = self.bandit.apply_evaluation_prior(own[arm], *counts, priors[1])
        self.dice = random.Random(view.seed)

    def select(self, segment: str = GENERAL) -> int:
        return self.bandit.pick_best(self.cells[segment], self.costs, **self.options, rng=self.dice)  # type: ignore[no-any-return]

    def update(self, arm: int, reward: float, segment: str = GENERAL) -> None:
        cells = self.cells[segment]
        cells[arm] = self.bandit.apply_delta(cells[arm], reward, 1.0 - reward)


OwnersBy = Literal["family"] | Mapping[str, str] | Callable[[str], str]
WEIGHTS: Final = {"quality": 0.7, "cost": 0.3, "latency": 0.0}  # LiteLLM's, which has no latency
WORTH_NOTHING: Final = {"cost": 0.05, "latency": 30.0}  # dollars and seconds of a call
_QUANTISED: Final = re.compile(r"[-_.](fp\d+|bf16|int\d+|q\d+\w*|\d+bit|awq|gptq|gguf)$")
_DECISION: Final = "cloneproof_decision"


def family(name: str) -> str:
    """Return a model's name without the prefix of its provider, its host and its quantisation, in lower case.

    Parameters
    ----------
    name : str
        Of a deployment.

    Examples
    --------
    >>> family("openrouter/openai/GPT-OSS-120B:free"), family("groq/openai/gpt-oss-120b-fp8"), family("gpt-oss:120b")
    ('gpt-oss-120b', 'gpt-oss-120b', 'gpt-oss-120b')
    """
    name, _, tag = name.lower().rpartition("/")[2].partition("@")[0].partition(":")
    name += f"-{tag}" if re.match(r"\d+(\.\d+)?b", tag) else ""
    while name != (shorter := _QUANTISED.sub("", name)):
        name = shorter
    return name


def owned(names: Sequence[str], by: OwnersBy) -> dict[str, list[str]]:
    """Return names by owner, to be reviewed.

    Parameters
    ----------
    names : sequence of str
        Of deployments.
    by : {"family"}, mapping or function
        By the name of the model (`family`), by a mapping that has each name, or by a function of the name.
    """
    say = family if by == "family" else by.get if isinstance(by, Mapping) else by
    owners: dict[str, list[str]] = {}
    for name in names:
        owner = say(name) if callable(say) else None
        if not isinstance(owner, str) or not owner:
            raise EngineError(
                f"expected an owner of {name!r}, got {owner!r}; give by='family', a mapping or a function"
            )
        owners.setdefault(owner, []).append(name)
    return owners


def router_session(
    owners: Mapping[str, Sequence[str]],
    requests_a_month: int,
    rates: Prior | None = None,
    segments: Mapping[str, float] | None = None,
    seed: int | bytes | None = None,
) -> Session:
    """Open a session for a router without a horizon: it ends at random, after the requests of a month on average.

    Parameters
    ----------
    owners : mapping of str to sequence of str
        The names of each owner; the arms of an agent are its names, in their order.
    requests_a_month : int
        How many are expected.
    rates : Prior, optional
        What is known of a model beforehand, by default nothing; `reservoir-bars` is tuned to it.
    segments : mapping of str to float, optional
        Types of requests, and the part of each.
    seed : int or bytes, optional
        Secret, and random if left out.
    """
    registered = {owner: len(names) for owner, names in owners.items()}
    agents = [Agent(owner, names, rates or Beta(1, 1)) for owner, names in registered.items()]
    market = Market(agents, requests_a_month, ends="at-random", segments=segments or {})
    made, seed = mechanism("reservoir-bars", market=market), os.urandom(32) if seed is None else seed
    return session(made, registered, requests_a_month, seed, ends="at-random", history=False, segments=segments)


class LiteLLMRouting:
    """A routing strategy of `litellm.Router` (tried with 1.109): a session decides which deployment of a group serves.

    Register it by `router.register_plugin(strategy)` and `litellm.callbacks.append(strategy.callback)`. An arm is the
    id of a deployment, an agent the owner of its model (`owners`: review it). Deployments that LiteLLM leaves out now,
    as in a cool-down, are paused; retries and fallbacks remain LiteLLM's; other groups get any deployment that is up.
    A call that fails is worth 0, a reply the weighted mean of its quality and of 1 - spent / `worth_nothing` for
    cost and latency: declared beforehand, so that no listing changes what another one earns.

    Parameters
    ----------
    router : litellm.Router
        Its deployments are registered; the list is frozen.
    group : str
        The model group that requests ask for.
    by : "family", mapping or function
        Whose a model is, as `owned` has it.
    requests_a_month : int
        As `router_session` has it, and its `rates`, `segments` and `seed` in `terms`.
    segment_of : function of (messages, request_kwargs), optional
        The segment of a request, by a rule that looks at no rating.
    quality : function of (call, reply), optional
        The quality of a reply in [0, 1], or None where `feedback` will say it; 1 if left out.
    weights, worth_nothing : mapping of str to float
        Of "quality", "cost" and "latency", with the sum 1; and the dollars and seconds that are worth 0.
    state : str, optional
        A file where each reward is saved, and from which the session goes on.
    """

    def __init__(
        self,
        router: Any,  # noqa: ANN401 (LiteLLM is optional)
        group: str,
        by: OwnersBy,
        requests_a_month: int,
        segment_of: Callable[[Any, Any], str] | None = None,
        quality: Callable[[Any, Any], float | None] = lambda call, reply: 1.0,
        weights: Mapping[str, float] = WEIGHTS,
        worth_nothing: Mapping[str, float] = WORTH_NOTHING,
        state: str | None = None,
        **terms: Any,  # noqa: ANN401
    ) -> None:
        if not hasattr(router, "registry"):
            kind = type(router).__name__
            raise EngineError(f"expected a litellm.Router with a registry, got {kind}; use LiteLLM 1.109 or newer")
        self.router, self.group, self.segment_of, self.quality, self.state = router, group, segment_of, quality, state
        self.weights, self.worth_nothing = WEIGHTS | dict.fromkeys(WEIGHTS, 0.0) | dict(weights), worth_nothing
        if set(self.weights) != set(WEIGHTS) or abs(sum(self.weights.values()) - 1) > 1e-9:
            raise EngineError(
                f"expected weights of {', '.join(WEIGHTS)} with the sum 1, got {brief(weights)}; divide them"
            )
        self.by, self.terms, self.season = by, {"requests_a_month": requests_a_month, **terms}, 0
        self._begin()
        if state is not None and Path(state).exists():
            saved = json.loads(Path(state).read_text(encoding="utf-8"))
            if saved["arms"] != self.arms:
                raise EngineError(f"expected the deployments that {state} was begun with, got others; name a new file")
            self.session, self.season = Session.from_json(saved["session"]), saved["season"]
        self._due: dict[str, float] = {}  # what cost and latency are worth, of decisions whose quality is not known
        self.callback = _litellm("litellm.integrations.custom_logger").CustomLogger()
        self.callback.async_log_success_event = self._succeeded
        self.callback.async_log_failure_event = self._failed

    def _begin(self) -> None:
        """Register the deployments that the group has now, and open a season."""
        here = [each for each in self.router.registry().all() if each["model_name"] == self.group]
        models = {each["model_info"]["id"]: each["litellm_params"]["model"] for each in here}
        self.owners = owned(list(dict.fromkeys(models.values())), self.by)
        self.arms = {owner: [key for key in models if models[key] in own] for owner, own in self.owners.items()}
        self.session, self.season = router_session(self.arms, **self.terms), self.season + 1
        self.terms["seed"] = None

    async def async_get_available_deployment(self, model: str, **request: Any) -> Any:  # noqa: ANN401
        """Return the deployment that serves a request, which LiteLLM calls; its `model_info` names the decision."""
        asked = request.pop("request_kwargs", None)
        up = await self.router.select(model, asked, kind="healthy", **request)
        if isinstance(up, dict):  # that the request names
            return up
        if model != self.group and up:
            return random.choice(up)
        segment = None if self.segment_of is None else self.segment_of(request.get("messages"), asked)
        by_id = {each["model_info"]["id"]: each for each in up}
        try:
            made = self._decided(segment, by_id)
        except PausedError:
            raise _litellm("litellm.types.router").RouterRateLimitErrorBasic(model) from None
        chosen = by_id[self.arms[made.agent][made.arm]]
        return {**chosen, "model_info": {**chosen["model_info"], _DECISION: f"{self.season}/{made.id}"}}

    def _decided(self, segment: str | None, up: Collection[str]) -> Decision:
        """Decide among the deployments that are up; in a new season if the last one is over, whose end was drawn."""
        for owner, keys in self.arms.items():
            for arm, key in enumerate(keys):
                (self.session.resume if key in up else self.session.pause)(owner, arm)
        part = self.session.begun.get(segment)
        if self.session.round < self.session.last and (part is None or part.round < part.last):
            return self.session.decide(segment)
        self._begin()
        return self._decided(segment, up)

    def get_available_deployment(self, *request: Any, **more: Any) -> Any:  # noqa: ANN401
        """Refuse synchronous calls, for which LiteLLM does not say who is up."""
        raise EngineError("expected an asynchronous call, got a synchronous one; use acompletion")

    def feedback(self, decision: str, quality: float) -> None:
        """Enter the quality of a reply in [0, 1], by the decision that the call's `model_info` names."""
        number_in(quality, "the quality of a reply", 0, 1, EngineError)
        if decision in self._due:
            self._reward(decision, self.weights["quality"] * quality + self._due.pop(decision))

    async def _succeeded(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:  # noqa: ANN401
        spent = {"cost": kwargs.get("response_cost") or 0.0, "latency": (end_time - start_time).total_seconds()}
        decision = _decision(kwargs)
        if decision is not None:
            worth = {part: max(0.0, 1 - spent[part] / self.worth_nothing[part]) for part in spent}
            self._due[decision] = sum(self.weights[part] * worth[part] for part in spent)
            quality = self.quality(kwargs, response_obj)
            if quality is not None:
                self.feedback(decision, quality)

    async def _failed(self, kwargs: Any, **_: Any) -> None:  # noqa: ANN401
        self._reward(_decision(kwargs), 0.0)

    def _reward(self, decision: str | None, value: float) -> None:
        """Enter a reward of the season that runs; those of earlier ones come too late."""
        season, _, number = (decision or "0/0").partition("/")
        if int(season) == self.season and int(number) in self.session.pending:
            self.session.reward(int(number), min(1.0, value))
            if self.state is not None:
                saved = {"season": self.season, "arms": self.arms, "session": self.session.to_json()}
                write_whole(self.state, json.dumps(saved))


def _decision(call: Mapping[str, Any]) -> str | None:
    """Return the decision that a call of LiteLLM was made for."""
    return (call.get("litellm_params", {}).get("model_info") or {}).get(_DECISION)


__all__ = ["LiteLLMRouting", "family", "litellm_router", "owned", "router_session"]
