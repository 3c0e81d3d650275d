"""Passwords beside the mode: in no command line, no message and no printed patch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eosctl.core.workers.modes import Mode
from eosctl.errors import EosctlError
from eosctl.upgrade.drivers.kubernetes.driver import kubernetes_driver
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl
from tests.conftest import Invoke
from tests.fakes.kubectl import Cluster, KubectlError
from tests.upgrade.drivers.kubernetes_stage import (
    CONNECT,
    FILE,
    SETTING,
    TEXT,
    file_of,
    mounting,
    template,
)

SECRET = 'sasl.jaas.config=x.Module required password="hunter2";'


@pytest.mark.parametrize("place", ["configmap", "variable"])
def test_secrets_are_in_no_command_line_and_no_message(cluster: Cluster, tmp_path: Path, place: str) -> None:
    """All properties were in kubectl's words: seen by `ps`, and in the error and the journal where it failed."""
    there = mounting(cluster, 1)
    if place == "configmap":
        cluster.add_configmap(FILE.configmap, data={FILE.key: f"{TEXT}{SECRET}\n"})
    else:
        cluster.add(CONNECT, pods=1, spec=template([{"name": "ALL", "value": f"{TEXT}{SECRET}\n"}]))
    app = there.app(tmp_path / "state")
    option: dict[str, Any] = {"file": FILE} if place == "configmap" else {"variable": "ALL"}
    driver = kubernetes_driver(app, [CONNECT], Kubectl(), **option)

    def denied(_found: dict[str, Any]) -> None:
        raise KubectlError('Error from server: admission webhook "policy" denied the request')

    cluster.writes_between.append(denied)
    with pytest.raises(EosctlError, match="policy") as refused:
        driver.bring(app, [], Mode.PREPARING)
    assert "hunter2" not in f"{refused.value.message}{refused.value.hint}"
    driver.bring(app, [], Mode.PREPARING)
    for words in [words for words in cluster.calls() if words[0] == "patch"]:
        assert "hunter2" not in " ".join(words[:-1]), "the last is what was given by stdin"
    assert "hunter2" in (file_of(cluster) if place == "configmap" else cluster.variables(CONNECT)["ALL"])


@pytest.mark.parametrize("place", ["configmap", "variable"])
def test_a_patch_with_secrets_is_printed_only_when_asked_for(cluster: Cluster, invoke: Invoke, place: str) -> None:
    """The whole file was printed with its passwords, into the log of a CI job."""
    there = mounting(cluster, 1)
    where = ["--workload", CONNECT, "--configmap", FILE.configmap, "--key", FILE.key]
    if place == "configmap":
        cluster.add_configmap(FILE.configmap, data={FILE.key: f"{TEXT}{SECRET}\n"})
    else:
        found = cluster.read(CONNECT)
        found["spec"] |= template([{"name": "ALL", "value": f"{TEXT}{SECRET}\n"}])
        cluster.write(CONNECT, found)
        where = ["--workload", CONNECT, "--env-name", "ALL"]
    words = ["upgrade", "apply", "-b", "localhost:1", "-g", "g", "--to", "enabled", "--driver", "kubernetes", *where]
    hidden = invoke(*words, "--print-patch", **there.surroundings)
    assert hidden.exit_code == 0, hidden.stderr
    assert "hunter2" not in f"{hidden.stdout}{hidden.stderr}"
    assert f"# no command, as it has secrets: set {SETTING}=preparing in " in hidden.stdout
    assert "--with-secrets" in hidden.stderr
    machine = invoke(*words, "--print-patch", "-o", "json", **there.surroundings)
    assert "hunter2" not in machine.stdout
    row = machine.json()["data"]["rows"][0]
    assert (row["patch"], row["command"]) == (None, None)
    shown = invoke(*words, "--print-patch", "--with-secrets", **there.surroundings)
    assert "hunter2" in shown.stdout
    assert shown.stderr == ""
    assert invoke(*words, "--with-secrets", "--dry-run", **there.surroundings).exit_code == 2
