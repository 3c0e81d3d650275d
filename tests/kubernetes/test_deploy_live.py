"""deploy/exporter, as it stands there, on a real API server, in a namespace with the strictest Pod Security Standard.

The definitions of PodMonitor and PrometheusRule name what the manifests have of the operator's own ones and refuse the
rest; no operator and no kubelet runs.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kubernetes.control_plane import ApiError, ControlPlane
from tests.kubernetes.custom_resources import define
from tests.sandbox_fixtures import wait_until

pytestmark = pytest.mark.live
DEPLOY = Path(__file__).parents[2] / "deploy"
_TEXT, _TEXTS = {"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}


def _object(*required: str, **members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": list(required)}


def _list(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


_DURATION = {"type": "string", "pattern": r"^(0|([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?)$"}
_RULE = _object("expr", alert=_TEXT, expr=_TEXT, **{"for": _DURATION}, labels=_TEXTS, annotations=_TEXTS)
_RULES = _object(groups=_list(_object("name", name=_TEXT, rules=_list(_RULE))))
_ENDPOINT = _object(port=_TEXT, interval=_DURATION)
_PODS = _object("selector", jobLabel=_TEXT, selector=_object(matchLabels=_TEXTS), podMetricsEndpoints=_list(_ENDPOINT))


def overlay(folder: Path, namespace: str) -> Path:
    """What a user makes of the base: another namespace. No node takes the pod."""
    base = os.path.relpath(DEPLOY / "exporter", folder)
    nowhere = {"op": "add", "path": "/spec/template/spec/nodeSelector", "value": {"eosctl/tests": "nowhere"}}
    patch = {"target": {"kind": "Deployment"}, "patch": yaml.safe_dump([nowhere])}
    made = {"resources": [base], "namespace": namespace, "patches": [patch]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(made))
    return folder


def kubectl(plane: ControlPlane, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(plane.program), "kubectl", "--kubeconfig", str(plane.kubeconfig), *words]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="session")
def operators(plane: ControlPlane) -> None:
    """The kinds of Prometheus' operator."""
    define(plane, "PodMonitor", "monitoring.coreos.com", {"v1": _PODS})
    define(plane, "PrometheusRule", "monitoring.coreos.com", {"v1": _RULES})


@pytest.fixture
def namespace(plane: ControlPlane, unique: str) -> str:
    strict = {"pod-security.kubernetes.io/enforce": "restricted"}
    plane.create("/api/v1/namespaces", {"metadata": {"name": unique, "labels": strict}})
    return unique


@pytest.mark.usefixtures("operators")
def test_the_exporters_base_is_taken(plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    """All of it at once, no field unknown, and a pod is admitted; what was wrong with one stands in the ReplicaSet."""
    applied = kubectl(plane, "apply", "--validate=strict", "--kustomize", str(overlay(tmp_path, namespace)))
    assert (applied.returncode, applied.stderr) == (0, "")
    where = f"/namespaces/{namespace}"

    def pods() -> list[Any]:
        return list(plane.api("GET", f"/api/v1{where}/pods")["items"])

    wait_until(pods, what="the pod")
    (pod,) = pods()
    (container,) = pod["spec"]["containers"]
    (config,) = [each for each in pod["spec"]["volumes"] if each["name"] == "config"]
    kept = plane.api("GET", f"/api/v1{where}/configmaps/{config['configMap']['name']}")
    assert kept["data"] == {"config.yaml": (DEPLOY / "exporter" / "config.yaml").read_text()}
    monitors = plane.api("GET", f"/apis/monitoring.coreos.com/v1{where}/podmonitors")["items"]
    service = plane.api("GET", f"/api/v1{where}/services/eosctl-exporter")
    for selector in (monitors[0]["spec"]["selector"]["matchLabels"], service["spec"]["selector"]):
        assert selector.items() <= pod["metadata"]["labels"].items()
    assert container["ports"][0]["name"] == monitors[0]["spec"]["podMetricsEndpoints"][0]["port"]
    assert container["ports"][0]["containerPort"] == 9618
    assert pod["metadata"]["labels"][monitors[0]["spec"]["jobLabel"]] == "eosctl"  # the job that the rules select
    (rules,) = plane.api("GET", f"/apis/monitoring.coreos.com/v1{where}/prometheusrules")["items"]
    assert len(rules["spec"]["groups"][0]["rules"]) > 15


@pytest.mark.usefixtures("operators")
def test_an_unknown_field_is_refused(plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    """The test above can fail: a member that the operator does not know is none that is silently dropped."""
    folder = overlay(tmp_path, namespace)
    made = yaml.safe_load((folder / "kustomization.yaml").read_text())
    wrong = [{"op": "add", "path": "/spec/podMetricsEndpoints/0/intervall", "value": "30s"}]
    made["patches"].append({"target": {"kind": "PodMonitor"}, "patch": yaml.safe_dump(wrong)})
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(made))
    refused = kubectl(plane, "apply", "--validate=strict", "--kustomize", str(folder))
    assert refused.returncode == 1
    assert "intervall" in refused.stderr


def test_the_upgrade_jobs_base_is_taken(plane: ControlPlane) -> None:
    """test_job_live.py runs the Job; this is its kustomization, which no test changes a word of."""
    name = "kafka-connect"
    plane.create("/api/v1/namespaces", {"metadata": {"name": name}})
    made = kubectl(plane, "apply", "--validate=strict", "--dry-run=server", "--kustomize", str(DEPLOY / "upgrade-job"))
    assert (made.returncode, made.stderr) == (0, "")
    with pytest.raises(ApiError, match="404"):
        plane.api("GET", f"/apis/batch/v1/namespaces/{name}/jobs/eosctl-upgrade")
