"""Checking a file that an audit wrote: a certificate is re-derived, a replay record is drawn again."""

from __future__ import annotations

from pathlib import Path

from cloneproof.analysis.certificate.document import FORMAT as CERTIFICATE
from cloneproof.analysis.certificate.document import KEYS, VERSION, read_json, whole_document
from cloneproof.analysis.certificate.verification import Verification, check


def verify(path: str | Path) -> Verification:
    """Check a certificate or a replay record that an audit wrote.

    Only a certificate can be `accepted`: a small checker that shares no code with the search found the verdict again.
    A record of samples can be `replayed`: the same code drew the same runs again, to the same bits.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Verification
        With `outcome` in a word, `holds`, and the `statement` in the checker's own words or why it does not hold.

    Raises
    ------
    CertificateError
        Where there is none of this version to read.

    Examples
    --------
    >>> import tempfile
    >>> import cloneproof as cp
    >>> market = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.6))],
    ...                    horizon=400)
    >>> audit = cp.audit(market, cp.mechanism("h-etc-r", agent_rounds=24, arm_rounds=12), agent="ana", max_copies=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cp.write_certificate(audit, f"{folder}/certificate.json")
    ...     cp.verify(f"{folder}/certificate.json").outcome
    'accepted'
    """
    data = read_json(path)
    if isinstance(data, dict):
        from cloneproof.analysis import replay_record  # late: it loads what draws runs, which a certificate needs not

        if data.get("format") == replay_record.FORMAT:
            keys = replay_record.KEYS
            return replay_record.replay(whole_document(data, path, replay_record.FORMAT, replay_record.VERSION, keys))
    return check(whole_document(data, path, CERTIFICATE, VERSION, KEYS))
