"""Check a file that an audit wrote: re-derive a certificate, or draw a replay record again."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

from cloneproof._checks import real
from cloneproof.analysis import replay_record
from cloneproof.analysis.audit.question import MechanismOrFactory
from cloneproof.analysis.certificate.document import FORMAT as CERTIFICATE
from cloneproof.analysis.certificate.document import KEYS, VERSION, read_json, whole_document
from cloneproof.analysis.certificate.verification import Verification, check
from cloneproof.analysis.certificate.writer import first_difference
from cloneproof.errors import CertificateError, CloneproofError, brief
from cloneproof.market.market import Market, checked_market
from cloneproof.mechanisms.mechanism import Mechanism

SECONDS = 600.0  # that a replay record may take, where nothing else is said


def verify(
    path: str | Path,
    *,
    market: Market | None = None,
    mechanism: MechanismOrFactory | None = None,
    seconds: float = SECONDS,
) -> Verification:
    """Check a certificate or a replay record that an audit wrote.

    Only a certificate can be `accepted`: a small checker that shares no code with the search found the verdict again.
    A record of samples can be `replayed`: the same code drew the same runs again, to the same bits.

    A certificate is about the market and the mechanism in it, which `about` lists. Pass yours to reject a certificate
    about another.

    Parameters
    ----------
    path : str or Path
        The file.
    market : Market, optional
        The market that it has to be about: agents, priors, horizon, share and rewards. The continuous prior of an
        irrelevant opponent only has to be continuous.
    mechanism : Mechanism or callable, optional
        The mechanism that it has to be about, or a function of the market that makes one.
    seconds : float, default 600
        The time for drawing a replay record again; its outcome is `undecided` if that is not enough. A certificate that
        would take more than about half a minute is rejected before the work.

    Returns
    -------
    Verification
        With `outcome` in a word, `holds`, the `statement` in the checker's own words or why it does not hold, and what
        it is `about`.

    Raises
    ------
    CertificateError
        If the file has no certificate or record of this version.

    Examples
    --------
    >>> import tempfile
    >>> import cloneproof as cp
    >>> market = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.6))],
    ...                    horizon=400)
    >>> papers = cp.mechanism("h-etc-r", agent_rounds=24, arm_rounds=12)
    >>> audit = cp.audit(market, papers, agent="ana", search=cp.Search(copies=2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cp.write_certificate(audit, f"{folder}/certificate.json")
    ...     cp.verify(f"{folder}/certificate.json").outcome
    ...     cp.verify(f"{folder}/certificate.json", market=market.with_horizon(500), mechanism=papers).statement
    'accepted'
    'it is about another market: its horizon is 400 in the certificate, and 500 in yours'
    """
    if market is not None:
        checked_market(market)
    budget = real(seconds)
    if budget is None or not 0 < budget < math.inf:
        raise CertificateError(f"expected seconds above 0 for a replay, got {brief(seconds)}; 600 is usual")
    data = read_json(path)
    if isinstance(data, dict) and data.get("format") == replay_record.FORMAT:
        record = whole_document(data, path, replay_record.FORMAT, replay_record.VERSION, replay_record.KEYS)
        return replay_record.replay(record, market, mechanism, budget)
    document = whole_document(data, path, CERTIFICATE, VERSION, KEYS)
    began = time.monotonic()
    try:
        difference = first_difference(document, market, _running(document, market, mechanism))
    except CloneproofError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError):  # no description of either: the checker says why
        difference = None
    return check(document) if difference is None else Verification(False, difference, time.monotonic() - began)


def replay_work(path: str | Path) -> str | None:
    """Describe how much a replay record has to draw; read from the file before any work."""
    data = read_json(path)
    if not isinstance(data, dict) or data.get("format") != replay_record.FORMAT:
        return None
    try:
        return f"{replay_record.recorded_rounds(data):.3g} rounds of {len(data['deviations'])} deviations"
    except (CertificateError, KeyError, TypeError, ValueError):
        return None  # `verify` says what is wrong with it


def _running(document: dict[str, Any], market: Market | None, mechanism: MechanismOrFactory | None) -> Mechanism | None:
    """Return the mechanism for the market, or for the certificate's market if none is given."""
    if mechanism is None or isinstance(mechanism, Mechanism):
        declared = mechanism
    elif callable(mechanism) and market is not None:
        declared = mechanism(market)
    else:
        declared = None
    if mechanism is not None and not isinstance(declared, Mechanism):
        raise CertificateError(
            f"expected a mechanism to compare with, got {brief(mechanism)}; give a cp.Mechanism, or a function of the "
            "market and the market"
        )
    if declared is None:
        return None
    if market is None:
        return declared.at_horizon(len(document["market"]["agents"]), document["market"]["horizon"])
    return declared.at_horizon(len(market.agents), market.horizon)
