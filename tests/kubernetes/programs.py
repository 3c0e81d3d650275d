"""Containers that run eosctl, as processes of this machine: with the pod's variables, files and service account.

There are no mounts here: a volume is a folder, and what a word or a variable says of it is that folder's path. kubectl
takes the service account from files at one fixed place in a pod; here a configuration that is made of the same token,
authority and namespace stands for them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.kubernetes.control_plane import ControlPlane

PROGRAM = "eosctl"


def is_program(pod: Mapping[str, Any]) -> bool:
    """Whether its container runs eosctl."""
    return any(each.get("command") == [PROGRAM] for each in pod["spec"]["containers"])


def start_program(plane: ControlPlane, pod: Mapping[str, Any], folder: Path) -> subprocess.Popen[bytes]:
    """Starts it; `folder` is the pod's, and gets its output as `log.txt`."""
    (container,) = pod["spec"]["containers"]
    volumes = {each["name"]: volume_of(plane, pod, each, folder) for each in pod["spec"]["volumes"]}
    places = {each["mountPath"]: volumes[each["name"]] for each in container["volumeMounts"]}
    kubectl = folder / "bin" / "kubectl"
    kubectl.parent.mkdir()
    kubectl.write_text(f'#!/bin/sh\nexec "{plane.program}" kubectl "$@"\n')
    kubectl.chmod(0o755)
    environ = {
        "PATH": f"{kubectl.parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "KUBECONFIG": str(_account(plane, pod, folder)),
        **{each["name"]: here(each["value"], places) for each in container["env"]},
    }
    words = [sys.executable, "-m", PROGRAM, *(here(word, places) for word in container["args"])]
    with (folder / "log.txt").open("wb") as log:
        return subprocess.Popen(
            words, cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )


def file_in(plane: ControlPlane, pod: Mapping[str, Any], path: str) -> str:
    """The text of a file that a ConfigMap puts at `path` of the first container."""
    folder, _, name = path.rpartition("/")
    (volume,) = [each["name"] for each in pod["spec"]["containers"][0]["volumeMounts"] if each["mountPath"] == folder]
    (configmap,) = [each["configMap"]["name"] for each in pod["spec"]["volumes"] if each["name"] == volume]
    return str(_get(plane, pod, f"configmaps/{configmap}")["data"][name])


def volume_of(plane: ControlPlane, pod: Mapping[str, Any], volume: Mapping[str, Any], folder: Path) -> Path:
    """The folder that a volume of a pod is; `folder` is the pod's."""
    if "hostPath" in volume:
        return Path(volume["hostPath"]["path"])
    if "persistentVolumeClaim" in volume:
        claim = _get(plane, pod, f"persistentvolumeclaims/{volume['persistentVolumeClaim']['claimName']}")
        bound = plane.api("GET", f"/api/v1/persistentvolumes/{claim['spec']['volumeName']}")
        return Path(bound["spec"]["hostPath"]["path"])
    place = folder / str(volume["name"])
    place.mkdir()
    if "configMap" in volume:
        for name, text in _get(plane, pod, f"configmaps/{volume['configMap']['name']}")["data"].items():
            (place / name).write_text(text)
    return place


def _account(plane: ControlPlane, pod: Mapping[str, Any], folder: Path) -> Path:
    """kubectl's configuration of the pod's service account, with a token as a kubelet asks for."""
    namespace, account = pod["metadata"]["namespace"], pod["spec"]["serviceAccountName"]
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    made = plane.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", request)
    config = json.loads(plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": made["status"]["token"]}
    config["contexts"][0]["context"]["namespace"] = namespace
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


def here(word: str, places: Mapping[str, Path]) -> str:
    """A path in a container, as it is on this machine; `places` are the folders of what is mounted there."""
    for place, folder in places.items():
        if word == place or word.startswith(f"{place}/"):
            return f"{folder}{word.removeprefix(place)}"
    return word


def _get(plane: ControlPlane, pod: Mapping[str, Any], what: str) -> Any:
    return plane.api("GET", f"/api/v1/namespaces/{pod['metadata']['namespace']}/{what}")
