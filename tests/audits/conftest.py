"""What several tests of audits plant."""

import pytest


@pytest.fixture
def guessed_quadrature(monkeypatch):
    """A rule whose points do not provably stand for the prior: its error is a guess from two resolutions."""
    for name, value in (("SAME", -1.0), ("FINE", 24)):
        monkeypatch.setattr(f"cloneproof.mechanisms.committing.law.{name}", value)
