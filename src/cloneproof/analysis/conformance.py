"""The conformance suite (placeholder while the engines are laid out)."""

from cloneproof.mechanisms.mechanism import Mechanism


def check_mechanism(mechanism: Mechanism) -> None:
    """Check a mechanism."""
