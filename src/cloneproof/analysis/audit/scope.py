"""The scope of a verdict in words: who was looked at, what was tried, with what, and why nothing was missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from cloneproof.analysis.audit.copy_limit import CopyLimit
from cloneproof.analysis.audit.proof.coverage import Coverage
from cloneproof.analysis.audit.question import Question
from cloneproof.analysis.audit.search.results import SampledResult, SearchResult
from cloneproof.analysis.audit.verdict import Verdict, Witness

MOST_LIMITS = 4


def scope_of(
    question: Question,
    verdict: Verdict,
    worst: Witness,
    results: Sequence[SearchResult],
    covered: Mapping[tuple[str, int], Coverage],
    limits: Sequence[CopyLimit] = (),
) -> str:
    """One paragraph; `covered` has the argument of each case, by agent and horizon."""
    parts = [_who(question), _tried(question.max_copies, results), *_added(results), *_left_out(results)]
    if verdict == "exploitable":
        parts.append(_evidence(worst))
        parts.append("larger gains, with copies that were not tried, are possible")
    else:
        parts += _reasons(question.agents, covered)
    parts += [limit.words for limit in limits[:MOST_LIMITS]]
    return "; ".join(parts) + "."


def _who(question: Question) -> str:
    horizons = question.horizons
    when = (
        f"horizon {horizons[0]}"
        if len(horizons) == 1
        else f"{len(horizons)} horizons from {horizons[0]} to {horizons[-1]}"
    )
    slack = f", gains of up to {question.tolerance:.3g} of the honest payoff pass" if question.tolerance else ""
    return f"replications by {_listed(question.agents)} against honest others with the market's priors, {when}{slack}"


def _tried(max_copies: int, results: Sequence[SearchResult]) -> str:
    words = []
    for agent in dict.fromkeys(result.agent for result in results):
        vectors = [vector for result in results if result.agent == agent for vector in result.evaluated]
        most = max((max(vector) for vector in vectors), default=1)
        words.append(f"{len(set(vectors))} vectors of copies of {agent} (up to {most} of an original)")
    engines = _listed(sorted({result.engine for result in results}))
    enclosed = any(witness.gain.kind == "proven" for result in results for witness in result.witnesses)
    how = {
        "closed-form": f"closed form, {'the best and the doubtful ones in balls' if enclosed else 'in floats'}",
        "tree": "state tree in floats",
        "sampled": "paired samples",
        "argument": "argument alone",
        "argument and sampled": "argument, and paired samples",
    }
    cap = f"up to {max_copies} of each and ladders of 2, 4, 8, .."
    return f"tried: {_listed(words)}, {cap}; by {how.get(engines, engines)}"


def _added(results: Sequence[SearchResult]) -> list[str]:
    """The vectors beyond grid and ladders that a race tried where the gain rose, each by name."""
    words = []
    for agent in dict.fromkeys(result.agent for result in results):
        of_agent = [result for result in results if result.agent == agent and isinstance(result, SampledResult)]
        vectors = dict.fromkeys(v for result in of_agent for v in result.added if v in result.evaluated)
        words += [f"{_listed([*map(str, vectors)])} of {agent}"] if vectors else []
    return [f"among them beyond these, where the gain rose: {_listed(words)}"] if words else []


def _left_out(results: Sequence[SearchResult]) -> list[str]:
    reasons = Counter(why for result in results for why in result.left_out.values())
    return [f"not tried: {number} vectors ({why})" for why, number in reasons.most_common(2)]


def _evidence(worst: Witness) -> str:
    gain = worst.gain
    if gain.kind == "proven":
        return f"the gain of {gain.value:.6g} is enclosed with error {gain.error:.1e} in ball arithmetic"
    if gain.kind in ("confidence", "asymptotic"):
        sequence = "a confidence sequence" if gain.kind == "confidence" else "an asymptotic confidence sequence"
        return f"the gain of {gain.value:.6g} has {sequence} of half-width {gain.error:.3g} ({gain.method})"
    return (
        f"the gain of {gain.value:.6g} is computed in floats and exceeds a counted bound of their roundings, "
        f"{gain.error:.1e}, more than a thousandfold; it is not a certified enclosure ({gain.method})"
    )


def _reasons(agents: Sequence[str], covered: Mapping[tuple[str, int], Coverage]) -> list[str]:
    """The argument for each agent (those of several horizons together), or what was not ruled out."""
    words = []
    for agent in agents:
        at_horizon = {horizon: each for (name, horizon), each in covered.items() if name == agent}
        number = len(at_horizon)
        arguments = [each.argument for each in at_horizon.values() if each.argument is not None]
        for argument, count in list(Counter(_general(text, number) for text in arguments).items())[:3]:
            at = "" if number == 1 else f" at {count} of {number} horizons"
            words.append(f"complete for {agent}{at}: {argument}")
        incomplete = {horizon: each for horizon, each in at_horizon.items() if each.argument is None}
        if incomplete:
            horizon = max(incomplete, key=lambda h: incomplete[h].not_ruled_out)
            at = "" if number == 1 else f" at {len(incomplete)} of {number} horizons"
            words.append(
                f"not complete for {agent}{at}: {incomplete[horizon].why_not}, so a gain of up to "
                f"{incomplete[horizon].not_ruled_out:.4g} at horizon {horizon} is not ruled out"
            )
    return words


def _general(argument: str, horizons: int) -> str:
    """Without the numbers of one horizon, where there are several."""
    if horizons == 1 or not argument.startswith("every vector of fewer"):
        return argument
    return "every vector of few arms was evaluated, and more arms explore too long to earn what honesty earns"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
