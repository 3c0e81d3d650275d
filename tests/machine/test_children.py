"""What the programs that eosctl starts are told of its secrets: nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from eosctl.app import App
from eosctl.deadline import Deadline
from eosctl.machine.children import child_environ, output_of
from eosctl.target import Target
from eosctl.upgrade.drivers.programs import run_program
from tests.fakes.clock import PLENTY_S
from tests.source_trees import nodes_of
from tests.test_layers import ROOT

SECRETS = {
    "EOSCTL_CONNECT_PASSWORD": "canary-1",
    "EOSCTL_CONNECT_TOKEN": "canary-2",
    "EOSCTL_CONNECT_KEY_PASSWORD": "canary-3",
    "EOSCTL_CONNECT_URL": "https://u:canary-4@w:8083",
}
OTHERS = {"EOSCTL_GROUP_ID": "g", "KUBECONFIG": "/k", "VAULT_TOKEN": "of-vault", "https_proxy": "http://u:p@proxy"}
STARTS = {"run", "Popen", "call", "check_call", "check_output", "getoutput", "system", "popen"}


def test_passwords_and_tokens_of_eosctl_stay_here() -> None:
    assert child_environ(SECRETS | OTHERS) == OTHERS


def test_a_program_of_a_driver_and_a_secret_command_get_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """kubectl, ssh, systemctl, JVMs and the user's own programs got all of them."""
    for name, value in (SECRETS | OTHERS).items():
        monkeypatch.setenv(name, value)
    app = App(Target(), Deadline.after(PLENTY_S), tmp_path)
    for printed in (run_program(app, ["env"]).decode(), output_of("env", "test")):
        assert "canary" not in printed
        assert "VAULT_TOKEN=of-vault" in printed


def _without_env(path: Path) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for node in nodes_of(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in ("subprocess", "os")
        and node.func.attr in STARTS
        and "env" not in {keyword.arg for keyword in node.keywords}
    ]


def test_each_program_is_started_with_an_environment_of_its_own() -> None:
    sources = [*(ROOT / "eosctl").rglob("*.py"), *(ROOT / "commands").rglob("*.py")]
    assert [place for path in sorted(sources) for place in _without_env(path)] == []
