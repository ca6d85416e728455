"""Arguments that several commands share, and how to parse them."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

import cloneproof as cp
from cloneproof._lib.checks import ungrouped, whole
from cloneproof._lib.clock import now
from cloneproof._lib.discovery import imported
from cloneproof._lib.files import check_place
from cloneproof.errors import CloneproofError, MarketError, MechanismError, brief

if TYPE_CHECKING:  # commands load what they compute with when they begin, so that help and refusals are quick
    from cloneproof.market.market import Market
    from cloneproof.mechanisms.mechanism import Mechanism
    from cloneproof.mechanisms.own.black_box import BlackBox


def option(metavar: str | None, help_text: str, *names: str, **more: Any) -> Any:  # noqa: ANN401 (typer's own)
    """Declare an option of a command; its metavar is None for a flag, and N for a whole number."""
    if metavar == "N":
        more["parser"] = parsed_count
    return typer.Option(*names, metavar=metavar, help=help_text, **more)


def _left(seconds: float | None) -> float | None:
    """Return what is left of seconds that begin with the process, so that loading counts; they are checked later."""
    since = SINCE.get()
    return seconds if since is None or not seconds or seconds < 0 else max(LEAST, seconds - (now() - since))


def parsed_count(text: str | int) -> int:
    """Parse a whole number such as `2000`, `2,000` or `2e3`.

    >>> parsed_count("2,000,000"), parsed_count("1e8")
    (2000000, 100000000)
    """
    number = _value(str(text))
    if (count := whole(number)) is None:
        raise typer.BadParameter(f"expected a whole number such as 2000, 2,000 or 2e3, got {brief(text)}; write one")
    return count


SINCE: ContextVar[float | None] = ContextVar("since", default=None)  # when the process of a command began
LEAST = 0.1  # seconds that a command has in any case
MarketFile = Annotated[str, typer.Argument(metavar="MARKET.toml", help="The market file.")]
MechanismName = Annotated[str | None, option("NAME", "A name from `cloneproof mechanisms`.", "--mechanism", "-m")]
Settings = Annotated[list[str] | None, option("NAME=VALUE", "Set a parameter of the mechanism; repeatable.", "--set")]
CopiesOption = Annotated[
    list[str] | None, option("AGENT=N,N,..", "How often an agent registers each original; repeatable.", "--copies")
]
PolicyName = Annotated[
    str | None,
    option(
        "MODULE:NAME",
        "Your own policy (a class or a BlackBox) or rule instead of a mechanism; FILE.py:NAME works too, --set gives "
        "a rule's options.",
        "--policy",
    ),
]
OwnPolicies = Annotated[list[str] | None, option("MODULE:NAME", "Add your own policy or rule; repeatable.", "--policy")]
Seconds = Annotated[
    float | None,
    option(
        "SECONDS",
        "A deadline; without one precision decides when to stop: one seed, one answer.",
        "--seconds",
        callback=_left,
    ),
]
Device = Annotated[str, option("DEVICE", "Where to draw runs: auto, cpu or gpu. The results are the same.")]
AsJson = Annotated[bool, option(None, "Print JSON.", "--json")]
Details = Annotated[bool, option(None, "Print everything that the page has.", "--details")]
HtmlFile = Annotated[str | None, option("FILE", "Also write the answer as a web page.", "--html")]
KnownFile = Annotated[
    str | None, option("KNOWN.toml", "Findings that are accepted: exit with 1 if others are found.", "--known")
]


UNANSWERED = 3  # the exit code if questions were left


def check_files(html: str | None, *others: str | None, drawn: bool = True) -> None:
    """Refuse paths that cannot be written, and a page with figures that cannot be drawn; before any long work."""
    for path in filter(None, (html, *others)):
        check_place(path)
    if html is not None and drawn and find_spec("matplotlib") is None:
        raise CloneproofError("expected Matplotlib to draw figures, got none; pip install 'cloneproof[plots]'")


def parsed_copies(texts: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """Parse copies such as `ana=2,1`.

    >>> parsed_copies(["ana=2,1", "bo=3"])
    {'ana': (2, 1), 'bo': (3,)}
    """
    copies = {}
    for text in texts or ():
        name, equals, numbers = text.rpartition("=")
        try:
            parsed = tuple(int(number) for number in numbers.split(","))
        except ValueError:
            parsed = ()
        if not equals or not name or not parsed:
            raise MarketError(
                f"expected copies as AGENT=N,N,.. such as ana=2,1, got {text!r}; separate whole numbers by commas"
            )
        if name in copies:
            raise MarketError(f"expected copies of {name!r} once, got them twice; keep one --copies {name}=..")
        copies[name] = parsed
    return copies


def own_policy(text: str, settings: Sequence[str] | None = None) -> Mechanism | BlackBox:
    """Return what is at `module:name`: a rule of one level or a mechanism; or a policy's class, as a black box.

    A function makes a rule if it takes what --set gives, or nothing; one of a view makes a policy.
    """
    from cloneproof.mechanisms.bandits.rule import Rule
    from cloneproof.mechanisms.catalogue import own_mechanism
    from cloneproof.mechanisms.mechanism import Mechanism
    from cloneproof.mechanisms.own.black_box import BlackBox

    look_here()
    made = imported(text, "a policy", "MyPolicy", MechanismError)
    if isinstance(made, BlackBox) and not settings:
        return made
    if isinstance(made, Rule | Mechanism) or (inspect.isfunction(made) and (settings or _takes_nothing(made))):
        return own_mechanism(text, **_options(settings))
    if settings:
        raise CloneproofError("expected --set with a mechanism or a rule, got it with a policy; set it in its class")
    return BlackBox(made)


def _takes_nothing(function: Callable[..., Any]) -> bool:
    return all(each.default is not each.empty for each in inspect.signature(function).parameters.values())


def own_by_name(policies: Sequence[str] | None) -> dict[str, Mechanism | BlackBox]:
    """Return the user's own policies and rules, by the name given on the command line."""
    return {name: own_policy(name) for name in policies or ()}


def look_here() -> None:
    """Also look for the user's modules in the current folder, as `python -m` does."""
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())


def mechanism_or_policy(
    mechanism: str | None, policy: str | None, settings: Sequence[str] | None
) -> tuple[str, Callable[[Market], Mechanism | BlackBox]]:
    """Return the name and the mechanism given by --mechanism or --policy."""
    if mechanism is not None and policy is None:
        return mechanism, lambda market: chosen_mechanism(mechanism, settings, market)
    if policy is None or mechanism is not None:
        raise MechanismError("expected one of --mechanism NAME and --policy MODULE:NAME, got both or none; give one")
    own = own_policy(policy, settings)
    return policy, lambda market: own


def chosen_mechanism(name: str, settings: Sequence[str] | None, market: Market) -> Mechanism:
    """Return the mechanism of that name, with parameters as set, or else from its theorem for the market."""
    return cp.mechanism(name, market=market, **_options(settings))


def _options(settings: Sequence[str] | None) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for text in settings or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise MechanismError(
                f"expected a parameter as NAME=VALUE such as arm_rounds=40, got {text!r}; add the value"
            )
        if key in ("market", "name"):
            raise MechanismError(
                f"expected a parameter of the mechanism, got {key!r}; `cloneproof mechanisms` lists them"
            )
        options[key] = _value(value)
    return options


def _value(text: str) -> int | float | str | list[int | float]:
    """Return a number, numbers separated by commas, or else the text itself.

    >>> _value("2,000"), _value(".04,.02"), _value("best")
    (2000, [0.04, 0.02], 'best')
    """
    for kind in (int, float):
        try:
            return kind(ungrouped(text))
        except ValueError:
            continue
    several = [_value(entry) for entry in text.split(",")] if "," in text else []
    numbers = [value for value in several if isinstance(value, int | float)]
    return numbers if several and len(numbers) == len(several) else text
