"""Sessions as text: saved whole, restored exactly, refused when they are damaged or of another version."""

from __future__ import annotations

import hashlib
import json
import math
from array import array
from typing import Any, Final

from cloneproof.errors import CloneproofError, SessionError
from cloneproof.market.family import BOUNDED
from cloneproof.mechanisms.machine import Registration, Slot
from cloneproof.mechanisms.mechanism import Mechanism, mechanism_from_dict
from cloneproof.mechanisms.session import Session, checked_session

FORMAT: Final = "cloneproof session"
VERSION: Final = 1


def session_to_json(session: Session) -> str:
    """The session as one JSON object; the digest guards against damage, not against malice."""
    registration = session.registration
    body = {
        "mechanism": session.mechanism.to_dict(),
        "names": registration.names,
        "arms": registration.arms,
        "agent_keys": registration.agent_keys,
        "arm_keys": registration.arm_keys,
        "horizon": session.horizon,
        "seed": session.seed,
        "share": session.share,
        "rewards": None if session.rewards is BOUNDED else session.rewards.to_dict(),
        "round": session.round,
        "sums": session.sums,
        "pending": [[number, *slot] for number, slot in session.pending.items()],
        "agent_of": session._agent_of.tolist(),
        "arm_of": session._arm_of.tolist(),
        "value_of": [None if math.isnan(value) else value for value in session._value_of],
        "machine": session.machine.to_dict(),
    }
    text = json.dumps(body, separators=(",", ":"))
    return json.dumps({"format": FORMAT, "version": VERSION, "digest": _digest(text), "body": text})


def session_from_json(text: str, mechanism: Mechanism | None = None) -> Session:
    """The session that `session_to_json` wrote."""
    body = _opened(text)
    try:
        saved = body["mechanism"]
        if mechanism is None:
            mechanism = _rebuilt(saved)
        elif mechanism.to_dict() != saved:
            raise SessionError(
                f"the session was run by {saved['name']!r} with other parameters, got {mechanism}; give the same one"
            )
        registration = Registration(
            tuple(body["names"]),
            tuple(body["arms"]),
            tuple(body["agent_keys"]),
            tuple(tuple(keys) for keys in body["arm_keys"]),
        )
        session = checked_session(
            mechanism, registration, body["horizon"], body["seed"], body["share"], body["rewards"]
        )
        session.round = body["round"]
        session.sums = list(body["sums"])
        session.pending = {number: Slot(*slot) for number, *slot in body["pending"]}
        session._agent_of = array("q", body["agent_of"])
        session._arm_of = array("q", body["arm_of"])
        session._value_of = array("d", [math.nan if value is None else value for value in body["value_of"]])
        session.machine.restore(body["machine"])
    except CloneproofError:
        raise
    except (KeyError, TypeError, ValueError, IndexError) as problem:
        raise SessionError(f"the session file is damaged ({problem!r}); restore it from a copy") from None
    return session


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _opened(text: str) -> dict[str, Any]:
    try:
        outer = json.loads(text)
    except (json.JSONDecodeError, TypeError):
        raise SessionError(
            "expected a whole session file, got text that ends early or is not JSON; save it again with to_json"
        ) from None
    if not isinstance(outer, dict) or outer.get("format") != FORMAT:
        raise SessionError("expected a session file, got other JSON; give the text that to_json returned")
    if outer.get("version") != VERSION:
        raise SessionError(
            f"expected a session file of version {VERSION}, got version {outer.get('version')!r}; "
            "open it with the cloneproof that wrote it"
        )
    if not isinstance(outer.get("body"), str) or _digest(outer["body"]) != outer.get("digest"):
        raise SessionError("the session file was altered after it was saved; restore it from a copy")
    body = json.loads(outer["body"])
    assert isinstance(body, dict)
    return body


def _rebuilt(saved: dict[str, Any]) -> Mechanism:
    levels = [saved["arm"], saved["agent"] or saved["arm"]]
    if any(level["rule"] is None for level in levels):
        raise SessionError(
            f"mechanism {saved['name']!r} has a function of your own, which a file cannot hold; "
            "pass it: Session.from_json(text, mechanism=..)"
        )
    return mechanism_from_dict(saved)
