"""API keys: `cp_ID_SECRET`. Storage has the hash of the secret; a key is shown once and never logged.

The secret has 256 random bits, so one SHA-256 is enough: there is nothing to guess that a slow hash would protect.
"""

from __future__ import annotations

import hmac
import re
import secrets
from hashlib import sha256
from typing import NamedTuple

from cloneproof.errors import Refused, ServeError
from cloneproof.serve.ledger.terms import Role
from cloneproof.serve.storage.interface import KeyRecord, Storage

_NOBODY = bytes(32)
_WHOLE = re.compile(r"cp_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_LONGEST = 4096  # characters of a file with a key


class Caller(NamedTuple):
    """Who calls: the key's id, its role, and the agent it speaks for, if it is an agent's."""

    id: str
    role: Role
    agent: str | None


def new_key(role: Role, agent: str | None, created: int) -> tuple[str, KeyRecord]:
    """A fresh key as its owner gets it, and as it is stored."""
    if (role == "agent") != (agent is not None):
        raise Refused(
            422, "invalid", "a key of role agent names its agent, and only such a key does; correct the request"
        )
    number, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    return f"cp_{number}_{secret}", KeyRecord(number, role, agent, sha256(secret.encode()).digest(), created)


def key_from_file(path: str, role: Role, created: int) -> KeyRecord:
    """The key that stands in a file, such as a container's secret, as it is stored; the file is the operator's."""
    try:
        with open(path, encoding="ascii") as file:
            text = file.read(_LONGEST).strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise ServeError(f"expected a file with a key, got {path!r} ({type(problem).__name__}); check it") from None
    match = _WHOLE.fullmatch(text)
    if match is None:
        raise ServeError(
            f"expected a key cp_.. in {path!r}, got something else; "
            f"make one with cloneproof serve :memory: --create-key {role}"
        )
    return KeyRecord(match[1], role, None, sha256(match[2].encode()).digest(), created)


def install_keys(storage: Storage, records: list[KeyRecord]) -> None:
    """Store keys that are not there yet. A revoked one stays revoked: who wants a new one changes the file."""
    stored = storage.keys() if records else []
    known = {record.id: record for record in stored}
    for record in records:
        old = known.get(record.id)
        if old is None:
            storage.put_key(record)
        elif (old.hash, old.role) != (record.hash, record.role):
            raise ServeError(
                f"expected a new key or the one that is known as {record.id}, got another secret or role; "
                "make a new key for the file"
            )


class KeyRing:
    """The keys in memory, and who a key belongs to."""

    def __init__(self, records: list[KeyRecord]) -> None:
        self.records = {record.id: record for record in records}

    def caller(self, header: bytes | None) -> Caller:
        """Who sent this Authorization header; the comparison takes the same time whatever is wrong with it."""
        text = (header or b"").decode("latin-1")
        scheme, _, key = text.partition(" ")
        prefix, _, rest = key.strip().partition("_")
        number, _, secret = rest.partition("_")
        record = self.records.get(number)
        expected = _NOBODY if record is None else record.hash
        fits = hmac.compare_digest(sha256(secret.encode("utf-8")).digest(), expected)
        if not fits or record is None or record.revoked or scheme.lower() != "bearer" or prefix != "cp":
            raise _unauthorized()
        return Caller(record.id, record.role, record.agent)

    def check_still_valid(self, caller: Caller) -> None:
        """Refuse a caller whose key was revoked since `caller` was asked."""
        record = self.records.get(caller.id)
        if record is None or record.revoked:
            raise _unauthorized()


def _unauthorized() -> Refused:
    return Refused(401, "unauthorized", "expected a valid key as 'Authorization: Bearer cp_..'; check the key")
