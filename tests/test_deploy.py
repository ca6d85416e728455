"""The files of `deploy`: every flag, variable, setting and metric that they name exists, and they can be read.

Docker, Prometheus and Grafana are not run here.
"""

import configparser
import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from cloneproof.cli.app import app
from cloneproof.cli.serve import config_values, settings
from support.service import Desk, open_market

DEPLOY = Path(__file__).parents[1] / "deploy"
SERVE = get_command(app).commands["serve"]
FLAGS = {option for parameter in SERVE.params for option in getattr(parameter, "opts", ())}


def text(name):
    return (DEPLOY / name).read_text(encoding="utf-8")


def everything():
    return {path.relative_to(DEPLOY).as_posix(): path.read_text() for path in DEPLOY.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def metrics():
    """The names of all metrics of a service with a market, those of a histogram with their endings."""
    with Desk() as desk:
        open_market(desk, {"ana": 1}, segments={"code": 1.0})
        desk.call("POST", "/v1/markets/feed/decisions", {"request_id": "1", "segment": "code"})
        return set(re.findall(r"^cloneproof_\w+", desk.call("GET", "/metrics").text, re.MULTILINE))


def test_every_variable_exists():
    named = set(re.findall(r"CLONEPROOF_SERVE_\w+", "\n".join(everything().values())))
    assert named <= {parameter.envvar for parameter in SERVE.params}


@pytest.mark.parametrize("name", ["grafana/dashboard.json", "prometheus/rules.yml"])
def test_every_metric_exists(metrics, name):
    named = re.findall(r"\bcloneproof_\w+", text(name))
    assert len(named) >= 4
    assert set(named) <= metrics


def test_the_dashboard_shows_every_metric(metrics):
    """But for the sums and counts that a quantile does not need."""
    shown = set(re.findall(r"\bcloneproof_\w+", text("grafana/dashboard.json")))
    assert {name for name in metrics - shown if not re.search(r"_(sum|count)$", name)} == set()


def test_the_dashboard_is_whole():
    board = json.loads(text("grafana/dashboard.json"))
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]]
    assert len(set(places)) == len(places) == len({panel["id"] for panel in board["panels"]})
    assert all(panel["targets"] and panel["title"] for panel in board["panels"])
    source = yaml.safe_load(text("grafana/provisioning/datasources/prometheus.yml"))["datasources"][0]["uid"]
    assert set(re.findall(r'"uid": "(\w+)"', text("grafana/dashboard.json"))) == {source, "cloneproof"}


def test_the_example_configuration_has_every_setting_at_its_default(tmp_path):
    whole = tmp_path / "whole.toml"
    whole.write_text(re.sub(r"^# (\w+ = )", r"\1", text("cloneproof.toml"), flags=re.MULTILINE))
    values = config_values(SERVE, str(whole))
    assert set(tomllib.loads(whole.read_text())["serve"]) == set(settings(SERVE))
    for parameter in SERVE.params:
        if parameter.name in values and parameter.default is not None and parameter.name != "place":
            assert values[parameter.name] == parameter.default


def test_the_unit_calls_what_exists():
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str
    unit.read_string(text("cloneproof.service"))
    _, command, *rest = unit["Service"]["ExecStart"].split()
    assert command == "serve"
    assert {word for word in rest if word.startswith("--")} <= FLAGS
    named = re.search(r"LoadCredential=(\w+):", text("cloneproof.service"))[1]
    assert f"CLONEPROOF_SERVE_PLATFORM_KEY_FILE=%d/{named}" in text("cloneproof.service")


def test_the_compose_file_names_what_is_there():
    data = yaml.safe_load(text("compose.yaml"))
    for service in data["services"].values():
        assert set(service.get("secrets", ())) <= set(data["secrets"])
        assert set(service.get("depends_on", ())) <= set(data["services"])
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in data["volumes"] or (DEPLOY / source).exists(), volume
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    for name, secret in re.findall(r"CLONEPROOF_SERVE_(\w+)_KEY_FILE: /run/secrets/(\w+)", text("compose.yaml")):
        assert secret == f"{name.lower()}_key"
        assert secret in data["services"]["market"]["secrets"]
    assert (DEPLOY / data["services"]["market"]["build"]["context"] / "deploy" / "Dockerfile").exists()
    scraped = yaml.safe_load(text("prometheus/prometheus.yml"))["scrape_configs"][0]
    host, port = scraped["static_configs"][0]["targets"][0].split(":")
    assert host in data["services"]
    assert f"CLONEPROOF_SERVE_PORT={port}" in text("Dockerfile")


def test_the_image_gets_what_it_installs():
    """The package needs these files to be built, and the rest of the repository is left out."""
    kept = [line[1:] for line in text("Dockerfile.dockerignore").splitlines() if line[0] == "!"]
    told = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())
    builds = {"pyproject.toml", "setup.py", f"{told['build-system']['build-backend']}.py", "constraints.txt"}
    assert {"src", *builds, told["project"]["readme"], *told["project"]["license-files"]} == set(kept)
    assert all((DEPLOY.parent / name).exists() for name in kept)
    lines = re.sub(r"\\\n", " ", text("Dockerfile")).splitlines()
    instructions = {line.split()[0] for line in lines if line.strip() and line[0] not in "# "}
    assert instructions <= {"FROM", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "ENV", "EXPOSE", "HEALTHCHECK",
                            "ENTRYPOINT", "CMD"}  # fmt: skip
    for line in lines:
        if line.startswith(("CMD", "ENTRYPOINT")):
            json.loads(line.split(" ", 1)[1])


def test_the_page_for_operators_lists_every_setting_and_every_metric(metrics):
    page = (DEPLOY.parent / "docs" / "operate.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\S+)` \| `(\S+)` \| `(\S+)` \|(?: `(.*?)`)? \|$", page, re.MULTILINE)
    known = settings(SERVE)
    assert {name for _, _, name, _ in rows} == set(known)
    for flag, variable, name, default in rows:
        parameter = known[name]
        assert variable == parameter.envvar
        assert flag in (parameter.opts[0], "DB")
        assert default == ("" if parameter.default is None or flag == "DB" else str(parameter.default))
    told = set(re.findall(r"\bcloneproof_\w+", page))
    assert {re.sub(r"_(bucket|sum|count)$", "", name) for name in metrics} == told
