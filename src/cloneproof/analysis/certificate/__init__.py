"""Certificates: a verdict with everything needed to check it, and a small checker that shares no code with the search.

`document` reads (every number an exact fraction), `checker` has all of the mathematics, `verification` calls it, and
`writer` makes certificates of audits; only the writer knows of the search.
"""

from cloneproof.analysis.certificate.document import CertificateError
from cloneproof.analysis.certificate.verification import Verification, verify
from cloneproof.analysis.certificate.writer import checked_certificate, write_certificate

__all__ = ["CertificateError", "Verification", "checked_certificate", "verify", "write_certificate"]
