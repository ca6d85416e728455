"""An audit's process ends with the service, also where that is killed and can end nothing itself."""

import subprocess
import sys
import time

import msgspec

from cloneproof.serve.api.what_if_messages import Belief, Task, WhatIf
from support.service import spec


def test_the_process_ends_when_whoever_asked_is_gone():
    hard = WhatIf(Belief(low=0.2, high=0.8, chance=0.5, originals=3, agents=4), max_copies=6)
    task = msgspec.json.encode(Task(spec(seed=None, horizon=10**6), hard, [], 600.0))
    process = subprocess.Popen(
        [sys.executable, "-m", "cloneproof.serve.what_if.answer"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    process.stdin.write(task + b"\n")
    process.stdin.flush()
    time.sleep(2.0)
    assert process.poll() is None  # it computes
    process.stdin.close()  # as the system does for a process that was killed
    try:
        assert process.wait(20) == 1
    finally:
        process.kill()
        process.wait()
