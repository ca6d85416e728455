"""The reference: documentation of public names, found by looking at the package instead of listing them.

`{public-names}` takes a module and documents what is in its `__all__`: `:room: market` keeps the names that are defined
in that room, `:but:` leaves those of a room out. `{public-modules}` does so for each module in a package's `__all__`.
A name of `cp` that no page documents is a warning, and so fails the build.
"""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util import logging

import cloneproof

LOGGER = logging.getLogger(__name__)


def directive_for(thing: object, name: str) -> list[str]:
    """The autodoc directive for one name."""
    if inspect.isclass(thing):
        if issubclass(thing, BaseException):
            return [f".. autoexception:: {name}", "   :show-inheritance:", ""]
        room = thing.__module__.rpartition(".")[0]  # what a base in the same room has is shown with the class
        others = [base.__name__ for base in thing.__mro__[1:] if base.__module__.rpartition(".")[0] != room]
        return [f".. autoclass:: {name}", "   :members:", f"   :inherited-members: {', '.join(others)}", ""]
    if callable(thing):
        return [f".. autofunction:: {name}", ""]
    return [f".. autodata:: {name}", "   :no-value:", ""]


def room_of(thing: object) -> str:
    """The path below `cloneproof` of the module that defines a thing."""
    return (getattr(thing, "__module__", None) or "").removeprefix("cloneproof").removeprefix(".")


class _Autodoc(Directive):
    """Parse autodoc's directives for some names at this place."""

    required_arguments = 1

    def markdown(self, module: ModuleType) -> list[str]:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        lines = self.markdown(importlib.import_module(self.arguments[0]))
        if not lines:
            raise self.error(f"expected {self.arguments[0]} to have names to document, found none")
        found = nodes.section()
        found.document = self.state.document
        self.state.nested_parse(StringList(lines, source="public names"), self.content_offset, found, True)
        return found.children


def documented(names: list[tuple[str, object]]) -> list[str]:
    """Markdown that documents these names; MyST has one directive that takes what autodoc writes."""
    lines = [line for name, thing in names for line in directive_for(thing, name)]
    return ["```{eval-rst}", *lines, "```", ""] if lines else []


class PublicNames(_Autodoc):
    """`{public-names} MODULE`: everything in its `__all__` that is no module, or only the names of some rooms."""

    option_spec: ClassVar = {"room": directives.unchanged, "but": directives.unchanged}

    def markdown(self, module: ModuleType) -> list[str]:
        rooms, others = self.options.get("room", "").split(), self.options.get("but", "").split()
        return documented(
            [
                (name, thing)
                for name, thing in _public(module)
                if (not rooms or _inside(room_of(thing), rooms)) and not _inside(room_of(thing), others)
            ]
        )


class PublicModules(_Autodoc):
    """`{public-modules} PACKAGE`: a section for each module in its `__all__`, with its text and its names."""

    option_spec: ClassVar = {"but": directives.unchanged}

    def markdown(self, module: ModuleType) -> list[str]:
        lines: list[str] = []
        for inner in _public_modules(module):
            short = inner.__name__.removeprefix(f"{module.__name__}.")
            if short not in self.options.get("but", "").split():
                lines += [f"## cp.{short}", "", "```{eval-rst}", f".. automodule:: {inner.__name__}", "```", ""]
                lines += documented(_face(inner))
        return lines


def _public(module: ModuleType) -> list[tuple[str, object]]:
    """What a module shows: its `__all__`, or else the classes and functions that it defines; no modules."""
    names = getattr(module, "__all__", None)
    things = [(name, getattr(module, name)) for name in names] if names else list(vars(module).items())
    return [
        (f"{module.__name__}.{name}", thing)
        for name, thing in things
        if not inspect.ismodule(thing) and (names or (not name.startswith("_") and _defined_in(module, thing)))
    ]


def _face(module: ModuleType) -> list[tuple[str, object]]:
    """What a module of `cp` shows; one without an `__all__` shows its classes, and its functions are for us."""
    return [(name, thing) for name, thing in _public(module) if hasattr(module, "__all__") or inspect.isclass(thing)]


def _public_modules(module: ModuleType) -> list[ModuleType]:
    return [thing for name in module.__all__ if inspect.ismodule(thing := getattr(module, name))]


def _defined_in(module: ModuleType, thing: object) -> bool:
    shown = inspect.isclass(thing) or inspect.isfunction(thing)
    return shown and getattr(thing, "__module__", None) == module.__name__


def _inside(room: str, rooms: list[str]) -> bool:
    return any(room == each or room.startswith(f"{each}.") for each in rooms)


def _without_factories(  # autodoc passes six arguments
    _app: Sphinx, _what: str, _name: str, _thing: object, _options: object, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Fields whose default is made anew each time: `<factory>` is no Python, and Sphinx would not lay the rest out."""
    return (signature and signature.replace("<factory>", "...")), returns


def _check_complete(app: Sphinx, exception: Exception | None) -> None:
    """Warn of names of `cp` and its modules that no page documents."""
    if exception is None:
        listed = {name for name, *_ in app.env.domains["py"].get_objects()}
        for module in (cloneproof, *_public_modules(cloneproof)):
            for name, _ in _face(module):
                if name not in listed:
                    LOGGER.warning("%s is public and on no page of the reference", name)


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_directive("public-names", PublicNames)
    app.add_directive("public-modules", PublicModules)
    app.connect("autodoc-process-signature", _without_factories)
    app.connect("build-finished", _check_complete)
    return {"parallel_read_safe": True}
