"""The routing strategy for LiteLLM: owners, rewards, cool-downs, seasons and its file; and in the real `Router`."""

import asyncio
import random
from collections import Counter
from datetime import datetime, timedelta
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

import cloneproof as cp
from cloneproof import adapters
from cloneproof.adapters import LiteLLMRouting, family, owned, router_session
from cloneproof.errors import EngineError

LITELLM = pytest.mark.skipif(find_spec("litellm") is None, reason="needs LiteLLM: pip install 'cloneproof[litellm]'")
MODELS = {"a": "openrouter/openai/gpt-oss-120b:free", "b": "groq/openai/GPT-OSS-120B-fp8", "c": "anthropic/other"}
RATES = {"a": 0.5, "b": 0.5, "c": 0.9}


class NoDeploymentError(Exception):
    pass


class FakeRouter:
    """What the strategy asks of a router."""

    def __init__(self):
        self.model_list = [
            {"model_name": "chat", "litellm_params": {"model": model}, "model_info": {"id": key}}
            for key, model in MODELS.items()
        ]
        self.down = set()

    def registry(self):
        return SimpleNamespace(all=lambda: self.model_list)

    async def select(self, model, request_kwargs, *, kind, **request):
        assert kind == "healthy"
        if request.get("specific_deployment"):
            return self.model_list[0]
        return [each for each in self.model_list if each["model_info"]["id"] not in self.down]


@pytest.fixture
def strategy(monkeypatch):
    fakes = SimpleNamespace(CustomLogger=SimpleNamespace, RouterRateLimitErrorBasic=NoDeploymentError)
    monkeypatch.setattr(adapters, "_litellm", lambda module: fakes)
    bars = cp.mechanism("reservoir-bars", bars=0.6, draws=4)  # as tuning takes a second
    monkeypatch.setattr(adapters, "mechanism", lambda name, market: bars)
    return lambda router=None, **more: LiteLLMRouting(
        router or FakeRouter(), "chat", "family", **{"requests_a_month": 3000, "seed": 3} | more
    )


def asked(strategy, **request):
    return asyncio.run(strategy.async_get_available_deployment("chat", **request))


def ended(strategy, deployment, cost=0.0, seconds=0.0, failed=False):
    now = datetime(2026, 1, 1)
    call = {"litellm_params": {"model_info": deployment["model_info"]}, "response_cost": cost}
    log = strategy.callback.async_log_failure_event if failed else strategy.callback.async_log_success_event
    asyncio.run(log(kwargs=call, response_obj=None, start_time=now, end_time=now + timedelta(seconds=seconds)))


def test_owners_follow_from_names_by_a_rule_that_is_named():
    assert owned(list(MODELS.values()), "family") == {
        "gpt-oss-120b": [MODELS["a"], MODELS["b"]],
        "other": [MODELS["c"]],
    }
    assert family("ollama/Llama3:8b-instruct-q4_K_M") == "llama3-8b-instruct"
    assert family("together/x-7b-awq@fp8") == "x-7b"
    assert owned(["x", "y"], {"x": "ana", "y": "ana"}) == {"ana": ["x", "y"]}
    assert owned(["x/1", "y/2"], lambda name: name[0]) == {"x": ["x/1"], "y": ["y/2"]}
    for by in ({"x": "ana"}, lambda name: "", "host", None):
        with pytest.raises(EngineError, match="expected an owner of 'y'"):
            owned(["y"], by)


def test_a_session_for_a_router_ends_at_random_after_a_month_on_average():
    live = router_session({"ana": ["x"], "bo": ["y", "z"]}, 50, cp.Beta(40, 10), {"code": 0.5, "writing": 0.5})
    assert (live.registration.arms, live.horizon, live.ends) == ((1, 2), 50, "at-random")
    assert isinstance(live.seed, bytes)
    tuned = cp.Market([cp.Agent(*each, cp.Beta(40, 10)) for each in (("ana", 1), ("bo", 2))], 25, ends="at-random")
    assert live.mechanism.in_segment("code").to_dict() == cp.mechanism("reservoir-bars", market=tuned).to_dict()


def test_rewards_are_the_declared_mean_of_quality_cost_and_latency(strategy):
    made = strategy(weights={"quality": 0.5, "cost": 0.25, "latency": 0.25}, quality=lambda call, reply: 0.8)
    ended(made, asked(made), cost=0.01, seconds=15.0)
    assert sum(made.session.payoff.values()) == pytest.approx(0.5 * 0.8 + 0.25 * 0.8 + 0.25 * 0.5)
    before = sum(made.session.payoff.values())
    ended(made, asked(made), failed=True)
    ended(made, asked(made), cost=9.0, seconds=900.0)
    assert sum(made.session.payoff.values()) == pytest.approx(before + 0.4)
    assert not made.session.pending
    plain = strategy()
    ended(plain, asked(plain), cost=0.05)
    assert sum(plain.session.payoff.values()) == pytest.approx(0.7)
    for weights in ({"quality": 0.5}, {"quality": 0.7, "price": 0.3}):
        with pytest.raises(EngineError, match="with the sum 1"):
            strategy(weights=weights)


def test_feedback_may_come_late_and_counts_once(strategy):
    made = strategy(quality=lambda call, reply: None)
    deployment = asked(made)
    ended(made, deployment)
    assert len(made.session.pending) == 1
    for quality in (0.5, 1.0):
        made.feedback(deployment["model_info"]["cloneproof_decision"], quality)
    assert sum(made.session.payoff.values()) == pytest.approx(0.3 + 0.35)


def test_who_cools_down_is_paused_and_comes_back(strategy):
    router = FakeRouter()
    made = strategy(router)
    for down in ({"c"}, {"a", "b"}, {"a"}, set()):
        router.down = down
        for _ in range(30):
            deployment = asked(made)
            assert deployment["model_info"]["id"] not in down
            ended(made, deployment)
        paused = {made.arms[owner][arm] for owner, arms in made.session.paused.items() for arm in arms}
        assert paused == down
    router.down = set(MODELS)
    with pytest.raises(NoDeploymentError):
        asked(made)
    assert asked(made, specific_deployment=True) is router.model_list[0]
    with pytest.raises(EngineError, match="use acompletion"):
        made.get_available_deployment("chat")


def test_a_season_that_is_over_is_followed_by_one_with_the_deployments_of_now(strategy):
    router = FakeRouter()
    made = strategy(router, requests_a_month=40)
    last = asked(made)
    router.model_list = router.model_list[1:]
    while made.season == 1:
        assert made.session.round <= made.session.last
        asked(made)
    assert made.arms == {"gpt-oss-120b": ["b"], "other": ["c"]}
    pay = made.session.payoff
    ended(made, last)  # of the season before
    assert made.session.payoff == pay


def test_it_goes_on_from_its_file(strategy, tmp_path):
    place, router = str(tmp_path / "state.json"), FakeRouter()
    first = strategy(router, state=place)
    for _ in range(20):
        ended(first, asked(first), cost=0.01)
    again = strategy(router, state=place)
    assert again.session.to_json() == first.session.to_json()
    assert [asked(again)["model_info"] for _ in range(9)] == [asked(first)["model_info"] for _ in range(9)]
    router.model_list = router.model_list[1:]
    with pytest.raises(EngineError, match="begun with, got others"):
        strategy(router, state=place)


def test_an_older_router_is_refused_in_a_sentence(strategy):
    with pytest.raises(EngineError, match="with a registry, got object; use LiteLLM"):
        strategy(object())


def test_segments_are_told_by_the_rule_that_is_given(strategy):
    made = strategy(
        segments={"code": 0.5, "writing": 0.5}, segment_of=lambda messages, _: "code" if messages else "writing"
    )
    for messages in (["x"], None, ["y"]):
        asked(made, messages=messages)
    assert {name: part.round for name, part in made.session.begun.items()} == {"code": 2, "writing": 1}


@LITELLM
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_litellms_router_is_routed_with_a_cool_down_in_the_middle(tmp_path):
    import litellm

    dice, down = random.Random(1), "litellm.RateLimitError"
    listed = [
        {
            "model_name": name,
            "litellm_params": {"model": model, "api_key": "x", "mock_response": key},
            "model_info": {"id": key},
        }
        for name, key, model in [*(("chat", *each) for each in MODELS.items()), ("spare", "s", "openai/spare")]
    ]
    router = litellm.Router(
        model_list=listed, num_retries=0, cooldown_time=12, allowed_fails=0, fallbacks=[{"chat": ["spare"]}]
    )
    made = LiteLLMRouting(
        router, "chat", "family", 3000, seed=3, state=str(tmp_path / "state.json"),
        quality=lambda call, reply: float(dice.random() < RATES[reply.choices[0].message.content]),
    )  # fmt: skip
    router.register_plugin(made)
    litellm.callbacks.append(made.callback)
    shown = Counter()

    async def ask(times):
        shown.clear()
        for _ in range(times):
            reply = await router.acompletion("chat", messages=[{"role": "user", "content": "a poem"}])
            shown[reply.choices[0].message.content] += 1
            for _ in range(500):  # LiteLLM calls back later
                if not made.session.pending:
                    break
                await asyncio.sleep(0.01)

    async def season():
        await ask(200)
        assert shown.most_common(1)[0][0] == "c"
        assert shown["s"] == 0
        params = next(each for each in router.registry().all() if each["model_info"]["id"] == "c")["litellm_params"]
        params["mock_response"] = down
        await ask(30)  # the first fails, falls back and cools down
        assert shown["c"] == 0
        assert 1 <= shown["s"] <= 2
        assert shown["a"] + shown["b"] >= 28
        assert made.session.paused == {"other": [0]}
        params["mock_response"] = "c"
        for _ in range(60):
            await asyncio.sleep(0.5)
            await ask(1)
            if not made.session.paused:
                break
        assert not made.session.paused
        await ask(60)
        assert shown["c"] > shown["a"] + shown["b"]
        assert shown["s"] == 0

    try:
        asyncio.run(season())
    finally:
        litellm.callbacks.remove(made.callback)
    assert not made.session.pending
