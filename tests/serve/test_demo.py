"""`make serve-demo`: a market to look at, on loopback, gone without a trace on Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
import time
from urllib.parse import urlsplit

import httpx


def test_the_demo_runs_and_ends(tmp_path):
    demo = subprocess.Popen(
        [sys.executable, "-m", "cloneproof.serve.demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    try:
        address = re.search(r"http://\S+", demo.stdout.readline())[0]
        key = re.search(r"cp_\S+", demo.stdout.readline())[0]
        assert urlsplit(address).hostname == "127.0.0.1"
        assert "What would a copy earn?" in httpx.get(address).text
        with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {key}"}) as viewer:
            rounds: list[int] = []
            while len(rounds) < 2 and demo.poll() is None:
                reply = viewer.get("/v1/markets/feed/progress")
                seen = reply.json().get("round", 0) if reply.status_code == 200 else 0
                if seen > (rounds[-1] if rounds else 0):
                    rounds.append(seen)
                time.sleep(0.05)
            assert len(rounds) == 2
            arms = viewer.get("/v1/markets/feed/agents/mallory").json()["arms"]
            assert len(arms) == 4
            assert viewer.post("/v1/markets/feed/settle").status_code == 403  # the viewer's key only reads
        demo.send_signal(signal.SIGINT)
        out, err = demo.communicate(timeout=60)
    finally:
        demo.kill()
    assert (demo.returncode, err) == (0, "")
    assert "nothing is kept" in out
    assert list(tmp_path.iterdir()) == []
