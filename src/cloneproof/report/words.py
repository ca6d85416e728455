"""Results in words, for pages, notebooks and terminals: numbers, verdicts, copies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from cloneproof._lib.sections import Paragraph, Section, Table
from cloneproof.audits.gain import Finding
from cloneproof.audits.result import Audit, AuditScope, AuditState, Reason
from cloneproof.market.market import Agent
from cloneproof.market.priors import Mixture
from cloneproof.market.segments import MeanLaw, SegmentPriors, SegmentVectors
from cloneproof.runs.estimate import Estimate

MINUS, NARROW, FIXED = "\u2212", "\u202f", "\u00a0"  # the last two are spaces at which no line breaks
KEPT = frozenset(("\n", NARROW, FIXED))  # what is no letter and stays
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
FINDINGS = ("finding", "what to do", "id")
FEW_RUNS = "few runs"
MOST_NAMES = 8  # of agents in a sentence
BY_SHARES = "for everybody, whatever they know, no list with copies earns more than the best weights on distinct items"
ANYBODY = "any opponents whose means and strategies do not depend on which of the agent's originals is better"
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def printable(name: object) -> str:
    r"""Escape control characters, as of a name, for terminals and pages.

    >>> print(printable("ana" + chr(27) + "[2J"))
    ana\x1b[2J
    """
    return "".join(letter if letter.isprintable() or letter in KEPT else ascii(letter)[1:-1] for letter in str(name))


def shorten(name: str, most: int) -> str:
    """Cut a name to a length.

    >>> shorten("a-very-long-name", 8), shorten("ana", 8)
    ('a-very-…', 'ana')
    """
    return name if len(name) <= most else f"{name[: most - 1]}…"


def names_words(names: Sequence[str], most: int = 8, letters: int = 40) -> str:
    """List names of agents or items; only the first ones if there are many.

    >>> names_words(["a", "b", "c"], most=2), names_words(["a", "b"])
    ('a, b and 1 more', 'a and b')
    """
    shown = [shorten(name, letters) for name in names[:most]]
    return _listed([*shown, f"{len(names) - most:,} more"] if len(names) > most else shown)


def not_shown(left: int, what: str) -> list[Paragraph]:
    """Say how many further ones a table does not show, if any."""
    return [Paragraph(f"{left:,} further {what}: --json has them.", role="note")] if left > 0 else []


def what_to_do(findings: Iterable[Sequence[str]], caption: str = "") -> Iterator[Section]:
    """Yield a table of what was found, what to do about it and perhaps the id of the finding; nothing without any."""
    if rows := [*findings]:
        columns = FINDINGS[: len(rows[0])]
        yield Section("What was found", (Table.of(columns, rows, caption, left=columns),))


def number(value: Estimate | float, sign: bool = False) -> str:
    """Write a number with the digits that a reader can use.

    >>> number(1955.04), number(316.5034), number(0.25, sign=True), number(-0.000123)
    ('1,955', '316.5', '+0.25', '\u22120.000123')
    """
    value = value.value if isinstance(value, Estimate) else value
    size = abs(value)
    if not math.isfinite(value) or size >= 1e15:
        text = f"{size:g}"
    elif size >= 1000:
        text = f"{size:,.0f}"
    elif size >= 100:
        text = f"{size:.1f}"
    elif size >= 0.1 or size == 0:
        text = f"{size:.2f}"
    else:
        text = f"{size:.3g}" if size >= 1e-4 else power_of_ten(size, up=False)
    return (MINUS if value < 0 else "+" if sign and value else "") + text


def rounded(value: float) -> str:
    """Write a number in two digits.

    >>> rounded(18432.0), rounded(0.0123)
    ('18,000', '0.012')
    """
    return f"{float(f'{value:.2g}'):,.0f}" if abs(value) >= 10 else f"{value:.2g}"


def power_of_ten(value: float, up: bool = True) -> str:
    """Write a number of any size in two digits; an error bound is rounded up.

    >>> power_of_ten(5.37e-11)
    '5.4·10⁻¹¹'
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    exponent = math.floor(math.log10(value))
    tenths = 10 * value / 10.0**exponent
    mantissa = (math.ceil(tenths) if up else round(tenths)) / 10
    if mantissa >= 10:
        mantissa, exponent = 1.0, exponent + 1
    return f"{mantissa:g}·10{str(exponent).translate(SUPERSCRIPTS)}"


def error_words(estimate: Estimate) -> str:
    """Return the half-width of the error with its sign, rounded up; too few runs have none."""
    return f"±{FIXED}{error_number(estimate)}" if math.isfinite(estimate.error) else f"{FEW_RUNS}: no interval"


def error_number(estimate: Estimate) -> str:
    """Return the half-width of the error, rounded up to two digits."""
    error = estimate.error
    if not math.isfinite(error):
        return FEW_RUNS
    if error == 0 or error < 1e-3 or error >= 1e6:
        return power_of_ten(error)
    digits = 10.0 ** (math.floor(math.log10(error)) - 1)
    return f"{math.ceil(error / digits) * digits:,.6g}"


def measured(estimate: Estimate, sign: bool = False) -> str:
    """Return the value and its error, in the digits that the error leaves.

    >>> from cloneproof.runs.estimate import Estimate
    >>> gains = [Estimate(553.4, error, "confidence", "runs") for error in (397.0, 2.31, math.inf)]
    >>> [measured(gain, sign=True).replace(FIXED, " ") for gain in gains]
    ['+553 ± 400', '+553.4 ± 2.4', '+553.4 (few runs: no interval)']
    """
    if not math.isfinite(estimate.error):
        return f"{number(estimate, sign)} ({error_words(estimate)})"
    if estimate.error <= max(5e-4 * abs(estimate.value), 1e-9):  # beyond the digits that are written
        return number(estimate, sign)
    digits = max(0, 1 - math.floor(math.log10(estimate.error)))
    text = f"{estimate.value:{'+' if sign else ''},.{digits}f}".replace("-", MINUS)
    return f"{text}{FIXED}{error_words(estimate)}"


def kind_words(estimate: Estimate) -> str:
    """Return what the error bound means."""
    meaning = {
        "exact": "the true value lies within the bound",
        "confidence": f"with probability {estimate.level:.4g}",
        "posterior": f"with probability {estimate.level:.4g}, given the data",
    }
    words = "the bound is an estimate" if estimate.heuristic else meaning[estimate.kind]
    return f"{words} ({estimate.method})"


def part_words(part: Estimate | None, sign: bool = False) -> str:
    """Write a part of something as a percentage, in the digits that its error leaves.

    An error of half the whole says nothing but how much it is at most; without an interval nothing is said at all.

    >>> parts = [Estimate(0.178, error, "confidence", "runs") for error in (0.0001, 0.0163, 0.07, 0.9, math.inf)]
    >>> [part_words(part, sign=True).replace(FIXED, " ") for part in parts]
    ['+17.8%', '+17.8% ± 1.7', '+18% ± 7', 'at most +108%', '–']
    """
    if part is None or not math.isfinite(part.error):
        return "–"
    value, low, high = 100 * part.value, 100 * part.low, 100 * part.high
    error = (high - low) / 2
    if error > max(50.0, abs(value)):
        return f"at most {high:{'+' if sign else ''},.0f}%"
    places = 1 if error < 3 and abs(value) < 1000 else 0
    text = f"{value:{'+' if sign else ''},.{places}f}"
    text = ("0" if not float(text.replace(",", "")) else text).replace("-", MINUS)
    if error < 0.05:
        return f"{text}%"
    if abs(high + low - 2 * value) > error / 2:  # two unlike sides
        return f"{text}% ({low:,.{places}f} to {high:,.{places}f})".replace("-", MINUS)
    up = math.ceil(10**places * error - 1e-9) / 10**places
    return f"{text}%{FIXED}±{FIXED}{up:,g}"


MANY = 10.0  # relative gains from which on there is no percentage


def percent(witness: Finding) -> str:
    """Return the relative gain of a deviation."""
    return relative_words(witness.relative_gain)


def relative_words(relative: float) -> str:
    """Write a relative gain as a percentage, or as a factor from ten times on; a gain from zero has neither.

    >>> [relative_words(gain).replace(NARROW, " ") for gain in (0.053, 4e-16, math.inf, 50.4)]
    ['+5.3 %', '0 %', 'from nothing', '51 times as much']
    """
    if not math.isfinite(relative):
        return "from nothing"
    if relative >= MANY:
        return f"{1 + relative:,.0f} times as much"
    value = 100 * relative
    if abs(value) < 5e-4:
        return f"0{NARROW}%"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 1 else 3
    return f"{value:+,.{digits}f}{NARROW}%".replace("-", MINUS)


def drawn(witness: Finding) -> bool:
    """Return whether the gain is that of pairs of runs, which say less of both payoffs than of their difference."""
    return witness.gain.kind != "exact"


def related(witness: Finding) -> str:
    """Return the relative gain in brackets, or nothing where the honest payoff is hardly known."""
    return "" if drawn(witness) and witness.honest.error > witness.honest.value / 2 else f" ({percent(witness)})"


def copies_words(copies: Sequence[int]) -> str:
    """Write a vector of copies.

    >>> copies_words((2, 1))
    '(2, 1)'
    """
    return f"({', '.join(map(str, copies))})"


def times(count: int) -> str:
    """Return how often, in words."""
    return {0: "not at all", 1: "once", 2: "twice"}.get(count, f"{count:,} times")


def copies_sentence(copies: Sequence[int]) -> str:
    r"""Describe what is registered how often.

    >>> print(*map(copies_sentence, [(2, 1), (3, 3), (4, 1, 1)]), sep="\n")
    the first original twice, the second once
    each of its 2 originals 3 times
    the first original 4 times, the others once
    """
    if len(copies) == 1:
        return f"its one original {times(copies[0])}"
    if len(set(copies)) == 1:
        return f"each of its {len(copies)} originals {times(copies[0])}"
    if len(copies) > 2 and len(set(copies[1:])) == 1:
        return f"the first original {times(copies[0])}, the others {times(copies[1])}"
    names = [ORDINALS[k] if k < len(ORDINALS) else f"{k + 1}th" for k in range(len(copies))]
    parts = [f"the {name} {times(count)}" for name, count in zip(names, copies, strict=True)]
    return ", ".join([parts[0].replace(f"the {names[0]}", f"the {names[0]} original"), *parts[1:]])


def prior_words(prior: MeanLaw) -> str:
    """Describe what is known about a mean, or about the means in all segments."""
    if isinstance(prior, SegmentPriors):
        parts = [
            f"{printable(name)}: {prior_words(own)}" for name, own in zip(prior.names[:4], prior.priors, strict=False)
        ]
        return f"a mean of its own in each segment ({'; '.join(parts)}{'; ..' if len(prior.names) > 4 else ''})"
    if isinstance(prior, Mixture) and prior.atoms is None:
        return f"a mean from one of {len(prior.parts)} continuous priors"
    if isinstance(prior, SegmentVectors):
        return f"means in the segments that are one of {len(prior.vectors)} vectors"
    if prior.atoms is None:
        facts = ", ".join(f"{key} {value}" for key, value in prior.to_dict().items())
        return f"a mean from a continuous prior ({printable(facts)})"
    if len(prior.atoms) == 1:
        return f"mean {prior.atoms[0][0]:g}"
    parts = [f"{value:g} (probability {weight:.3g})" for value, weight in prior.atoms[:6]]
    return "mean " + ", ".join(parts[:-1]) + f" or {parts[-1]}" + (", .." if len(prior.atoms) > 6 else "")


def agent_words(agent: Agent) -> str:
    """Describe an agent's originals and what it knows of them."""
    kinds = list(dict.fromkeys(map(prior_words, agent.laws)))
    if len(kinds) == 1:
        return ("one original with " if agent.count == 1 else f"{agent.count} originals, each with ") + kinds[0]
    return f"{agent.count} originals: " + "; ".join(map(prior_words, agent.laws))


def verdict_sentence(audit: Audit) -> str:
    """Describe the verdict in a sentence."""
    worst, tolerance = audit.worst, audit.tolerance
    beyond = f" by more than {100 * tolerance:g}{NARROW}%" if tolerance else ""
    name, rounds = printable(worst.agent), f"{worst.horizon:,} rounds"
    if audit.verdict == "exploitable" and not drawn(worst):
        return (
            f"Registering copies pays: {name} expects {number(worst.copied)} instead of {number(worst.honest)} in "
            f"{rounds} ({percent(worst)}) by registering {copies_sentence(worst.copies)}."
        )
    if audit.verdict == "exploitable":
        return (
            f"Registering copies pays: {name} gains {measured(worst.gain, sign=True)}{related(worst)} in {rounds} by "
            f"registering {copies_sentence(worst.copies)}."
        )
    if audit.verdict == "clone-proof":
        proven = f"Registering copies does not pay{beyond}, within the scope stated below."
        if worst.argued:
            return f"{proven} No copies were evaluated."
        return (
            f"{proven} The best copies tried, {copies_words(worst.copies)}, change what {name} expects by "
            f"{number(worst.gain, sign=True)} ({percent(worst)})."
        )
    if audit.about_tried:
        rest = "Copies that were not tried are not covered." if audit.state == AuditState.NONE_TRIED_PAYS else ""
        return f"No attack was found, and honesty was not proven best: {audit.about_tried}. {rest}".strip()
    most, honest = worst.gain_at_most, worst.honest.value
    relative = f" ({number(100 * most / honest)}{NARROW}%)" if honest > 0 else ""
    among = f"a gain of up to {number(most)}{relative} for {name} is not ruled out." if most > 0 else (
        "no copies pay, but not everything could be tried."
    )  # fmt: skip
    if drawn(worst) and most > MANY * honest:
        among = f"too few runs were drawn to say what copies gain {name}."
    return (
        f"No attack was proven{' beyond the tolerance' if tolerance else ''}, and honesty was not proven best: "
        f"among what was tried, {among}"
    )


def sentence(text: str) -> str:
    """Make a text begin and end like a sentence.

    >>> sentence("copies of ana, up to 4 of each")
    'Copies of ana, up to 4 of each.'
    """
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def seen(estimate: Estimate) -> bool:
    """Return whether there is an error that can be seen in the digits that are written."""
    return max(0.005 * abs(estimate.value), 1e-9) < estimate.error < math.inf


def regret_words(regret: Estimate | None) -> str:
    """Write a regret, with its error where that can be seen."""
    if regret is None:
        return "not computed"
    if not math.isfinite(regret.error):
        return f"{number(regret.value)} ({FEW_RUNS})"
    return f"{number(regret.value)} ± {number(regret.error)}" if seen(regret) else number(regret.value)


def scope_words(scope: AuditScope) -> str:
    """Describe what an audit tried, what it proved, and against whom, in one paragraph."""
    wanted = {"scan": _scan_words, "any": _search_words, "market": _search_words}
    return (
        "; ".join([*wanted[scope.against](scope), *([BY_SHARES] if scope.by_shares else []), *_delay_words(scope)])
        + "."
    )


def scope_sentences(scope: AuditScope) -> list[str]:
    """Return what was covered, why or what is open, and what late rewards change: at most three sentences.

    What was tried, with which engine, stands in a table (`report.audit`), and all of it in `scope_words`.
    """
    if scope.against == "scan":
        listed = ["; ".join(_scan_words(scope)), BY_SHARES if scope.by_shares else ""]
    else:
        reasons = [_reason_words(reason) for reason in scope.reasons]
        open_ = ["larger gains, with copies that were not tried, are possible"] if scope.attack is not None else reasons
        listed = [_covered_words(scope), "; ".join([*open_, *([BY_SHARES] if scope.by_shares else [])])]
    return [sentence(words) for words in [*listed, "; ".join(_delay_words(scope))] if words]


def _covered_words(scope: AuditScope) -> str:
    """Say whose replications, against whom, for how long."""
    slack = f", gains of up to {scope.tolerance:.3g} of the honest payoff pass" if scope.tolerance else ""
    where = f" in {scope.segments} segments together, with one registration for all," if scope.segments else ""
    whom = "against honest others with the market's priors" if scope.against == "market" else f"against {ANYBODY}"
    return f"replications by {_names(scope.agents)}{where} {whom}, horizon {scope.horizon}{slack}"


def _scan_words(scope: AuditScope) -> list[str]:
    when = "in a market that ends at random" if scope.at_random else "at every horizon"
    deviations = sum(tried.number * len(tried.agents) for tried in scope.tried)
    besides = "deviations were evaluated besides, by closed form against honest others with their priors"
    return [
        f"all copies and withholdings, against {ANYBODY}, {when}, by {_names(scope.agents)}: {scope.reasons[0].words}",
        "not covered: an agent that knows which of its originals is better, originals of different priors, second "
        "accounts",
        f"{deviations} {besides}" if deviations else "no deviation was evaluated",
    ]


def _search_words(scope: AuditScope) -> list[str]:
    added = [f"{_listed([*map(str, vectors)])} of {agent}" for agent, vectors in scope.added.items()]
    words = [scope.about_tried] if scope.about_tried else []
    grid = f", up to {scope.copies} of each and ladders of 2, 4, 8, .." if scope.copies else ""
    words += [_covered_words(scope), f"tried: {_tried_words(scope)}{grid}"]
    words += [f"by {engine_words(scope)}"]
    words += [f"among them beyond these, where the gain rose: {_listed(added)}"] if added else []
    words += [f"not tried: {count} vectors ({why})" for why, count in scope.left_out]
    if scope.attack is not None:
        words += [_attack_words(scope.attack), "larger gains, with copies that were not tried, are possible"]
    else:
        words += [_reason_words(reason) for reason in scope.reasons]
    return words


def _tried_words(scope: AuditScope) -> str:
    """Describe the vectors tried, in a phrase however many agents there are."""
    most = max(tried.most for tried in scope.tried)
    if len(scope.tried) <= 2:
        words = [f"{tried.number} vectors of copies of {_each(tried.agents)}" for tried in scope.tried]
        return f"{_listed(words)} (up to {most} of an original)"
    numbers = [tried.number for tried in scope.tried]
    agents = sum(len(tried.agents) for tried in scope.tried)
    return (
        f"{min(numbers)} to {max(numbers)} vectors of copies of each of {agents} agents (up to {most} of an original)"
    )


def engine_words(scope: AuditScope) -> str:
    """Return what evaluated the lists."""
    engines = _listed(scope.engines)
    words = {
        "law": "closed form",
        "tree": "state tree",
        "sampled": "paired samples",
        "argument": "argument alone",
        "argument and sampled": "argument, and paired samples",
    }
    return words.get(engines, engines)


def _attack_words(gain: Estimate) -> str:
    if gain.kind != "exact":
        return f"the gain of {gain.value:.6g} has an interval of half-width {gain.error:.3g} ({gain.method})"
    return f"the gain of {gain.value:.6g} is computed with an error of at most {gain.error:.1e} ({gain.method})"


def _reason_words(reason: Reason) -> str:
    whom = _names(reason.agents)
    if reason.settles:
        return f"complete for {whom}: {reason.words}"
    return f"not complete for {whom}: {reason.words}, so a gain of up to {reason.most:.4g} is not ruled out"


def _delay_words(scope: AuditScope) -> list[str]:
    delays = scope.delays
    if delays is None:
        return []
    words = [] if delays.declared else ["rewards arrive before the next decision"]
    if delays.declared and scope.attack is not None:
        words = ["the deviations are evaluated without delays"]
    if delays.gain is None:
        return [*words, f"with late rewards: {delays.reason}"]
    gained = "no copies gain" if delays.gain == 0 else f"copies gain at most {delays.gain:.3g}"
    return [
        *words,
        f"with late rewards: {gained} where delays depend neither on what is registered nor on rewards "
        f"(docs/textbook/delays.md; our proof, unreviewed): {delays.reason}",
    ]


def _each(agents: Sequence[str]) -> str:
    return agents[0] if len(agents) == 1 else f"each of {_names(agents)}"


def _names(agents: Sequence[str]) -> str:
    return _listed(agents) if len(agents) <= MOST_NAMES else f"{len(agents):,} agents"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
