"""The router of the guide in TypeScript: its types are checked, and it runs in Node against a service."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.service import in_thread

GUIDE = Path(__file__).parents[2] / "docs/guides/router.md"
OFFLINE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ENETUNREACH", "ERR_SOCKET", "network")
TOLD = "\nconsole.log(JSON.stringify([first, second]));\n"


def needed(program, package):
    """The path of a program; without it a skip, or a failure where skipping is not allowed."""
    found = shutil.which(program)
    if found is None:
        sentence = f"expected {program} on the path, got none; apt-get install {package}"
        if os.environ.get("CLONEPROOF_CI") == "1":
            pytest.fail(sentence)
        pytest.skip(sentence)
    return found


@pytest.fixture
def program(tmp_path):
    """The program as JavaScript in a folder, compiled by `tsc`."""
    node, npm = needed("node", "nodejs"), needed("npm", "npm")
    (text,) = re.findall(r"```ts\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)
    (tmp_path / "package.json").write_text('{ "type": "module", "private": true }')
    (tmp_path / "router.ts").write_text(text + TOLD, encoding="utf-8")

    def ran(*command, **variables):
        given = os.environ | variables
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=given)

    installed = ran(npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "typescript@5.9")
    if installed.returncode and any(word in installed.stderr for word in OFFLINE):
        pytest.skip("npm reaches no registry, so TypeScript cannot be installed")
    assert installed.returncode == 0, installed.stderr
    options = "--strict --module nodenext --target es2022 --lib es2022,dom"
    checked = ran(node, "node_modules/typescript/bin/tsc", *options.split(), "router.ts")
    assert (checked.returncode, checked.stdout) == (0, "")
    return lambda **variables: ran(node, "router.js", **variables)


def test_the_router_of_the_guide_serves_rates_and_pauses(program):
    with in_thread() as (address, key):
        done = program(API=f"{address}/v1", KEY=key)
        refused = program(API=f"{address}/v1", KEY="cp_1_no")
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)
    assert (first["request_id"], second["request_id"]) == ("request-1", "request-2")
    assert first["arm"] != second["arm"]  # which was paused
    assert refused.returncode == 1
    assert "unauthorized" in refused.stderr or "key" in refused.stderr
