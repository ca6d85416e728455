"""The reference: documentation of public names, found by looking at the package instead of listing them.

`{public-names}` takes a module and documents what is in its `__all__`. `:room: market` keeps the names that are defined
in that room, `:but:` leaves those of a room out, `:classes:` keeps classes only. `{parts}` takes a package of parts,
one file each (rules, scores, restarts, ..), and documents the function or the classes of each file.
A name of `cp` that no page documents is a warning, and so fails the build.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
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
        return [f".. autoclass:: {name}", "   :members:", ""]
    if callable(thing):
        return [f".. autofunction:: {name}", ""]
    return [f".. autodata:: {name}", "   :no-value:", ""]


def room_of(thing: object) -> str:
    """The path below `cloneproof` of the module that defines a thing."""
    return (getattr(thing, "__module__", None) or "").removeprefix("cloneproof").removeprefix(".")


class _Autodoc(Directive):
    """Parse autodoc's directives for some names at this place."""

    required_arguments = 1

    def names(self, module: ModuleType) -> list[tuple[str, object]]:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        names = self.names(importlib.import_module(self.arguments[0]))
        if not names:
            raise self.error(f"expected {self.arguments[0]} to have names to document, found none")
        lines = [line for name, thing in names for line in directive_for(thing, name)]
        found = nodes.container()
        self.state.nested_parse(_as_rst(lines), self.content_offset, found)
        return found.children


def _as_rst(lines: list[str]) -> StringList:
    # MyST parses what is nested as Markdown, and has one directive that parses its content as reStructuredText.
    fenced = ["```{eval-rst}", *lines, "```"]
    return StringList(fenced, source="public names")


class PublicNames(_Autodoc):
    """`{public-names} MODULE`: everything in its `__all__` that is no module, or only the names of some rooms."""

    option_spec: ClassVar = {"room": directives.unchanged, "but": directives.unchanged, "classes": directives.flag}

    def names(self, module: ModuleType) -> list[tuple[str, object]]:
        rooms, others = self.options.get("room", "").split(), self.options.get("but", "").split()
        public = {name: getattr(module, name) for name in _public(module)}
        return [
            (f"{module.__name__}.{name}", thing)
            for name, thing in public.items()
            if (not rooms or _inside(room_of(thing), rooms))
            and not _inside(room_of(thing), others)
            and ("classes" not in self.options or inspect.isclass(thing))
        ]


class Parts(_Autodoc):
    """`{parts} PACKAGE`: the function of each file's name, or else the classes that the file defines."""

    def names(self, module: ModuleType) -> list[tuple[str, object]]:
        found = []
        for info in pkgutil.iter_modules(module.__path__):
            file = importlib.import_module(f"{module.__name__}.{info.name}")
            defined = {name: thing for name, thing in vars(file).items() if _defined_in(file, thing)}
            if info.name in defined:
                defined = {info.name: defined[info.name]}
            found += [(f"{file.__name__}.{name}", thing) for name, thing in defined.items() if name[0] != "_"]
        return found


def _public(module: ModuleType) -> list[str]:
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    return [
        name
        for name in names
        if not inspect.ismodule(getattr(module, name))
        and (hasattr(module, "__all__") or _defined_in(module, getattr(module, name)))
    ]


def _defined_in(module: ModuleType, thing: object) -> bool:
    return getattr(thing, "__module__", None) == module.__name__ and (
        inspect.isclass(thing) or inspect.isfunction(thing)
    )


def _inside(room: str, rooms: list[str]) -> bool:
    return any(room == each or room.startswith(f"{each}.") for each in rooms)


def _without_factories(  # autodoc passes six arguments
    _app: Sphinx, _what: str, _name: str, _thing: object, _options: object, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Fields whose default is made anew each time: `<factory>` is no Python, and Sphinx would not lay the rest out."""
    return (signature and signature.replace("<factory>", "...")), returns


def _check_complete(app: Sphinx, exception: Exception | None) -> None:
    """Warn of names of `cp` that no page documents."""
    if exception is None:
        documented = {name for name, *_ in app.env.domains["py"].get_objects()}
        for name in _public(cloneproof):
            if f"cloneproof.{name}" not in documented:
                LOGGER.warning("cp.%s is public and on no page of the reference", name)


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_directive("public-names", PublicNames)
    app.add_directive("parts", Parts)
    app.connect("autodoc-process-signature", _without_factories)
    app.connect("build-finished", _check_complete)
    return {"parallel_read_safe": True}
