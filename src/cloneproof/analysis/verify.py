"""Checking a file that an audit wrote: a certificate is re-derived, a replay record is drawn again."""

from __future__ import annotations

from pathlib import Path

from cloneproof.analysis.certificate.document import FORMAT as CERTIFICATE
from cloneproof.analysis.certificate.document import KEYS, VERSION, read_json, whole_document
from cloneproof.analysis.certificate.verification import Verification, check


def verify(path: str | Path) -> Verification:
    """Check a certificate or a replay record; a `CertificateError` says that there is none of this version to read.

    Only a certificate can be `accepted`: a small checker that shares no code with the search found the verdict again.
    A record of samples can be `replayed`: the same code drew the same runs again, to the same bits.
    """
    data = read_json(path)
    if isinstance(data, dict):
        from cloneproof.analysis import replay_record as replay

        if data.get("format") == replay.FORMAT:
            return replay.replayed(whole_document(data, path, replay.FORMAT, replay.VERSION, replay.KEYS))
    return check(whole_document(data, path, CERTIFICATE, VERSION, KEYS))
