"""What several tests of audits plant."""

import pytest


@pytest.fixture
def guessed_quadrature(monkeypatch):
    """A rule whose points do not provably stand for the prior: its error is a guess from two resolutions."""
    monkeypatch.setattr("cloneproof.mechanisms.expectations.SAME", -1.0)
    monkeypatch.setattr("cloneproof.mechanisms.committing.law.FINE", 24)
