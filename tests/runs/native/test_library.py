"""The library of kernels: built from these sources or refused, and what Python and C++ say alike."""

import re
import shutil

import pytest

from cloneproof.errors import EngineError
from cloneproof.mechanisms import streams
from cloneproof.runs import tapes
from cloneproof.runs.native import build, library


@pytest.fixture
def installed(tmp_path):
    """A folder as an installation has it: sources, and the library that was built from them."""
    library.library()
    folder = tmp_path / "native"
    shutil.copytree(build.FOLDER, folder)
    return folder


def test_a_library_of_other_sources_is_refused(installed):
    assert library.loaded(installed, checkout=False)
    header = installed / "sums.h"
    header.write_text(header.read_text() + "// another line\n")
    with pytest.raises(EngineError, match=r"expected kernels built from the C\+\+ sources installed here, got others"):
        library.loaded(installed, checkout=False)


def test_an_installation_without_a_library_says_what_to_do(installed):
    for built in installed.glob("*.so"):
        built.unlink()
    with pytest.raises(EngineError, match=r"expected compiled kernels, got none; install a C\+\+ compiler"):
        library.loaded(installed, checkout=False)


@pytest.mark.skipif(build.compiler() is None, reason="no C++ compiler")
def test_a_checkout_builds_what_is_stale_and_says_what_does_not_compile(installed, monkeypatch):
    monkeypatch.setattr(build, "OPTIONS", tuple(option for option in build.OPTIONS if option != "-O3"))
    text = r'extern "C" const char* sources() { return "\0cloneproof sources " CLONEPROOF_SOURCES; }'
    (installed / "module.cc").write_text(text)
    assert library.loaded(installed, checkout=True)
    (installed / "module.cc").write_text("no program")
    with pytest.raises(EngineError, match=r"(?s)the kernels do not compile:.*error"):
        library.loaded(installed, checkout=True)


def test_no_compiler_in_a_checkout_is_said_as_in_an_installation(installed, monkeypatch):
    monkeypatch.setattr(build, "compiler", lambda: None)
    (installed / "sums.h").write_text("")
    with pytest.raises(EngineError, match="got others; install"):
        library.loaded(installed, checkout=True)


def test_streams_have_the_numbers_of_the_session():
    header = (build.FOLDER / "streams.h").read_text()
    numbers = {}
    for names in re.findall(r"enum \{(.*?)\};", header):
        at = 0
        for each in names.split(","):
            name, _, given = each.partition("=")
            at = int(given or at)
            numbers[name.strip()], at = at, at + 1
    assert len(numbers) >= 13
    assert numbers == {name: getattr(streams, name, getattr(tapes, name, None)) for name in numbers}


def test_a_record_is_its_struct():
    with pytest.raises(AssertionError, match="Chunk has other fields in C"):
        library.record("Chunk", runs=3, streams=0)
