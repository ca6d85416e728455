"""A card that is not there: the C++ build of the kernels in its place."""

import pytest

from cloneproof.runs.gpu import launch
from support.host_kernels import HostKernels


@pytest.fixture
def as_card(monkeypatch):
    class Pretended(HostKernels):
        name = "C++"
        launches = 0

        def play(self, *arguments):
            Pretended.launches += 1
            super().play(*arguments)

    monkeypatch.setattr(launch, "why_no_card", lambda: None)
    monkeypatch.setattr(launch, "card", Pretended)
    return Pretended
