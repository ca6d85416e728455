"""A derived text with the head of the ledger it was derived from, and a digest over both.

The digest tells a text that was damaged or edited from one that was written here. It keeps nobody out who can write the
database and computes it again; `cloneproof replay` compares what is in the text with the ledger.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

from cloneproof.serve.ledger.chain import Head


class Unsealed(NamedTuple):
    """A text whose digest fits, and the head that it belongs to."""

    head: Head
    text: bytes


def seal(head: Head, text: bytes) -> bytes:
    """The text with its head and digest.

    >>> unseal(seal(Head(3, bytes(32)), b"state")).text
    b'state'
    """
    rest = b"%d %s\n%s" % (head.n, head.hash.hex().encode(), text)
    return sha256(rest).hexdigest().encode() + b" " + rest


def unseal(sealed: bytes) -> Unsealed | None:
    """What was sealed, or nothing where the digest does not fit."""
    digest, _, rest = sealed.partition(b" ")
    if sha256(rest).hexdigest().encode() != digest:
        return None
    header, _, text = rest.partition(b"\n")
    number, hash_ = header.split(b" ")
    return Unsealed(Head(int(number), bytes.fromhex(hash_.decode())), text)
