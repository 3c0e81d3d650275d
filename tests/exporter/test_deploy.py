"""deploy/exporter beside the code: its rules are printed, its command line parses, its probes and ports are served."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from tests.conftest import Invoke

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "exporter"


def manifest(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))


def test_the_rules_are_those_that_the_command_prints(invoke: Invoke, pytestconfig: pytest.Config) -> None:
    """`pytest --update-golden` writes the file anew."""
    printed = invoke("exporter", "rules", "--format", "prometheusrule")
    path = FOLDER / "prometheusrule.yaml"
    if pytestconfig.getoption("--update-golden"):
        path.write_text(printed.stdout, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == printed.stdout
    resource = manifest("prometheusrule.yaml")
    data = invoke("exporter", "rules", "--format", "prometheusrule", "-o", "json").json()["data"]
    assert resource == data["resource"]
    assert resource["spec"] == data["rules"] == yaml.safe_load(invoke("exporter", "rules").stdout)
    assert "resource" not in invoke("exporter", "rules", "-o", "json").json()["data"]


def test_the_base_has_every_file() -> None:
    made = manifest("kustomization.yaml")
    named = {*made["resources"], *(name for each in made["configMapGenerator"] for name in each["files"])}
    assert named == {path.name for path in FOLDER.iterdir()} - {"kustomization.yaml"}


def test_the_containers_command_is_one_of_eosctl() -> None:
    """The Service, the PodMonitor and the probes name the port on which it listens."""
    (container,) = manifest("deployment.yaml")["spec"]["template"]["spec"]["containers"]
    root: click.Group = importlib.import_module("eosctl.commands.frame.root").root
    name, *words = container["args"]
    command = root.get_command(click.Context(root), name)
    assert command is not None
    context = command.make_context(name, list(words))
    port = int(context.params["listen"].rpartition(":")[2])
    assert [each["containerPort"] for each in container["ports"]] == [port]
    assert [each["port"] for each in manifest("service.yaml")["spec"]["ports"]] == [port]
    probes = {container[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")}
    assert probes == {"/healthz", "/readyz"}  # tests/exporter/test_server.py asks both
    mounted = {each["mountPath"] for each in container["volumeMounts"]}
    assert {"/etc/eosctl/config.yaml", "--config"} <= {*words}
    assert mounted >= {"/etc/eosctl", *(each["value"] for each in container["env"] if each["name"] == "XDG_STATE_HOME")}
