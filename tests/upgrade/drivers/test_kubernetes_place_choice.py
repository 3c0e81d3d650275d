"""What is refused before anything is written, as it would change no worker, or more than the mode."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.errors import RefusedError, UsageError
from eosctl.upgrade.drivers.kubernetes.driver import kubernetes_driver
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl
from tests.fakes.kubectl import Cluster
from tests.upgrade.drivers.kubernetes_stage import (
    CONNECT,
    FIELD,
    FILE,
    TEXT,
    VARIABLE,
    mounting,
    pods,
    prepare,
    template,
)


def test_an_image_that_takes_no_variable_is_found_when_the_upgrade_is_planned(cluster: Cluster, tmp_path: Path) -> None:
    """It was found when `enabled` was not what the workers had become, two restarts later."""
    there = mounting(cluster)
    with pytest.raises(RefusedError, match=f"the variable {VARIABLE} is not in the template of its pods") as refused:
        prepare(there, tmp_path / "state")
    assert str(refused.value.hint).startswith("--configmap connect-config --key connect.properties edits them.")
    cluster.add(CONNECT, pods=2, spec=template([{"name": "PROPERTIES", "value": TEXT}]))
    with pytest.raises(RefusedError, match="and the variable PROPERTIES has the properties of a worker") as refused:
        prepare(there, tmp_path / "state")
    assert str(refused.value.hint).startswith("--env-name PROPERTIES edits them.")
    cluster.add(CONNECT, pods=2, spec=template([{"name": "CONNECT_GROUP_ID", "value": "g"}]))
    there.follow()
    there.settle()
    prepare(there, tmp_path / "state")


@pytest.mark.parametrize(
    ("source", "complaint", "hint"),
    [
        (
            {"configMapKeyRef": {"name": FILE.configmap, "key": FILE.key}},
            "the variable ALL of statefulset/connect has the properties of a worker, from configmap/connect-config",
            "--configmap connect-config --key connect.properties edits them.",
        ),
        (
            {"secretKeyRef": {"name": "s", "key": "k"}},
            "the variable ALL of statefulset/connect is taken from elsewhere (secretKeyRef), which eosctl does",
            "Give it a value in the template",
        ),
    ],
)
def test_a_variable_whose_value_is_elsewhere_is_not_replaced(
    cluster: Cluster, tmp_path: Path, source: dict[str, Any], complaint: str, hint: str
) -> None:
    """All properties were replaced by `preparing`, and the pods crashed."""
    there = mounting(cluster)
    cluster.add(CONNECT, pods=2, spec=template([{"name": "ALL", "valueFrom": source}]))
    with pytest.raises(RefusedError, match=re.escape(complaint)) as refused:
        prepare(there, tmp_path / "state", driver={"variable": "ALL"})
    assert str(refused.value.hint).startswith(hint)
    assert cluster.calls() == []


def test_a_variable_of_the_mode_alone_may_come_from_elsewhere(cluster: Cluster, app: App) -> None:
    """Its value was said to be `None`."""
    sources: list[dict[str, Any]] = [
        {"configMapKeyRef": {"name": "mode", "key": "k"}}, {"secretKeyRef": {"name": "s", "key": "k"}},
    ]  # fmt: skip
    cluster.add_configmap("mode", data={"k": "disabled"})
    for source in sources:
        cluster.add(CONNECT, pods=1, spec=template([{"name": VARIABLE, "valueFrom": source}]))
        driver = kubernetes_driver(app, [CONNECT], Kubectl(), variable=VARIABLE)
        assert driver.taken_back(app, [Mode.ENABLED]) == f"{CONNECT}: {FIELD} is not set, no longer enabled"
        driver.bring(app, [], Mode.ENABLED)
        assert cluster.variables(CONNECT) == {VARIABLE: "enabled"}


def test_a_properties_variable_of_another_group_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    """A file of another group was refused, and such a variable was edited."""
    there = pods(cluster, 1, **template([{"name": "ALL", "value": "group.id=other\n"}]))
    with pytest.raises(RefusedError, match="variable ALL of statefulset/connect is of group other, and this is group"):
        prepare(there, tmp_path / "state", driver={"variable": "ALL"})


@pytest.mark.parametrize("sidecar", [{}, {"env": [{"name": "GROUP_ID", "value": "x"}]}, {"envFrom": [{}]}])
def test_where_nothing_tells_what_the_image_takes_it_must_be_said(
    cluster: Cluster, app: App, sidecar: dict[str, Any]
) -> None:
    """The file was in a Secret, or a sidecar's variables counted: `enabled` failed after the second restart."""
    containers = [{"name": "connect", "env": []}, {"name": "proxy", **sidecar}]
    volumes = [{"name": "config", "secret": {"secretName": "s"}}]
    cluster.add(CONNECT, pods=1, spec={"template": {"spec": {"containers": containers, "volumes": volumes}}})
    with pytest.raises(RefusedError, match="nothing shows that its image makes properties of variables") as refused:
        kubernetes_driver(app, [CONNECT], Kubectl(), container="connect")
    assert f"--env-name {VARIABLE}" in str(refused.value.hint)
    kubernetes_driver(app, [CONNECT], Kubectl(), container="connect", variable=VARIABLE)


def test_a_name_of_a_variable_is_nothing_to_an_operator_s_resource(cluster: Cluster, app: App) -> None:
    """It was ignored."""
    cluster.add("kafkaconnect/connect", spec={"config": {}})
    with pytest.raises(UsageError, match="kafkaconnect/connect has the mode in its own spec; --env-name is for"):
        kubernetes_driver(app, ["kc/connect"], Kubectl(), variable="X")
