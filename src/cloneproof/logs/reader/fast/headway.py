"""How far a scan is, and whether it should stop: what threads that read and the one that waits say to each other."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass
class Headway:
    """The part that is done, from 0 to 1; `stop` is set by who no longer waits."""

    part: float = 0.0
    stop: threading.Event = field(default_factory=threading.Event)
