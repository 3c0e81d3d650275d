"""Workloads of the tests: manifests whose pods are Connect workers of a group on the stack's broker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Deadline
from eosctl.sandbox.settings import GroupSpec, worker_properties
from eosctl.sandbox.stack import Stack
from eosctl.target import Target
from tests.conftest import Outcome
from tests.envelope import envelope_of
from tests.kubernetes.control_plane import ControlPlane

_OWN = ("listeners", "rest.advertised.host.name")  # of each pod


@dataclass(frozen=True)
class Scene:
    """A namespace with workloads of one Connect group, and eosctl as its operator runs it."""

    plane: ControlPlane
    stack: Stack
    folder: Path
    namespace: str
    group: str

    def create_namespace(self) -> None:
        """Makes it, and a `kubectl` for PATH."""
        self.plane.create("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        bin_folder = self.folder / "bin"
        bin_folder.mkdir()
        script = bin_folder / "kubectl"
        script.write_text(f'#!/bin/sh\nexec "{self.plane.program}" kubectl "$@"\n')
        script.chmod(0o755)

    def add(
        self,
        name: str,
        *,
        replicas: int,
        workers: bool = True,
        kind: str = "statefulset",
        container: Mapping[str, Any] | None = None,
        volumes: Sequence[Mapping[str, Any]] = (),
        beside: Sequence[Mapping[str, Any]] = (),
        before: Sequence[Mapping[str, Any]] = (),
        **spec: Any,
    ) -> None:
        """A workload of disabled workers, or of pods that do nothing; `container` is what theirs has besides.

        `beside` are sidecars, and `before` init containers.
        """
        env = [
            {"name": f"CONNECT_{key.upper().replace('.', '_')}", "value": value}
            for key, value in self.properties().items()
            if workers
        ]
        more = {} if workers else {"envFrom": [{"configMapRef": {"name": "none", "optional": True}}]}
        one = {"name": "connect", "image": "connect:tests", "env": env, **more, **(container or {})}
        pod = {"containers": [*beside, one], "initContainers": list(before), "volumes": list(volumes)}
        template = {"metadata": {"labels": {"app": name}}, "spec": pod}
        selector = {"matchLabels": {"app": name}}
        service = {"serviceName": name} if kind == "statefulset" else {}
        whole = {"replicas": replicas, "selector": selector, "template": template, **service, **spec}
        self.plane.create(self._path(kind), {"metadata": {"name": name}, "spec": whole})

    def properties(self) -> dict[str, str]:
        """Those of a disabled worker, but for what each pod has of its own."""
        servers = self.stack.bootstrap_servers
        made = worker_properties(GroupSpec(self.group), Mode.DISABLED, bootstrap_servers=servers, port=0, replication=1)
        return {key: value for key, value in made.items() if key not in _OWN}

    def app(self, *, timeout_s: float = 240.0) -> App:
        """For a driver that is run by itself."""
        target = Target(group_id=self.group)
        return App(target=target, deadline=Deadline.after(timeout_s), state_dir=self.folder)

    def scale(self, name: str, replicas: int, *, kind: str = "statefulset") -> None:
        """What an autoscaler does."""
        self.plane.api("PATCH", f"{self._path(kind)}/{name}", {"spec": {"replicas": replicas}})

    def read(self, what: str) -> Mapping[str, Any]:
        """A workload KIND/NAME as it is now."""
        kind, _, name = what.partition("/")
        return dict(self.plane.api("GET", f"{self._path(kind)}/{name}"))

    def clear(self) -> None:
        """Takes all workloads away; no garbage collector runs, so their pods are taken away, too."""
        for kind in ("statefulset", "deployment"):
            self.plane.api("DELETE", self._path(kind))
        self.plane.api("DELETE", f"/apis/apps/v1/namespaces/{self.namespace}/replicasets")
        self.plane.api("DELETE", f"/api/v1/namespaces/{self.namespace}/pods")

    def pod_uids(self) -> dict[str, str]:
        """Name -> uid of the pods that stay."""
        items = self.plane.api("GET", f"/api/v1/namespaces/{self.namespace}/pods")["items"]
        found = [each["metadata"] for each in items if "deletionTimestamp" not in each["metadata"]]
        return {str(each["name"]): str(each["uid"]) for each in found}

    def pod_uid(self, name: str) -> str | None:
        """The pod's; None while there is none that stays."""
        return self.pod_uids().get(name)

    def ready(self) -> list[str]:
        """The pods that are Ready."""
        items = self.plane.api("GET", f"/api/v1/namespaces/{self.namespace}/pods")["items"]
        return [str(each["metadata"]["name"]) for each in items if _ready(each)]

    def start(self, *words: str, kubeconfig: Path | None = None) -> subprocess.Popen[str]:
        """`eosctl WORDS` about the group, in a process group of its own."""
        where = ["-b", self.stack.bootstrap_servers, "-g", self.group, "--config-topic", f"{self.group}-configs"]
        line = [sys.executable, "-m", "eosctl", *words, *where, "--offset-topic", f"{self.group}-offsets"]
        environ = {
            **os.environ,
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "KUBECONFIG": str(kubeconfig or self.plane.kubeconfig),
            "XDG_STATE_HOME": str(self.folder / "state"),
        }
        return subprocess.Popen(
            [*line, "--timeout", "180s", "-o", "json"],
            env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip

    def eosctl(self, *words: str, kubeconfig: Path | None = None) -> Outcome:
        """What `eosctl WORDS` printed and exited with."""
        return ended(self.start(*words, kubeconfig=kubeconfig))

    def apply(self, *words: str, workload: str = "statefulset/connect") -> Sequence[str]:
        """The words of an `upgrade apply`."""
        where = ["--driver", "kubernetes", "--workload", workload, "--namespace", self.namespace]
        return ["upgrade", "apply", *where, "--settle-timeout", "300s", *words]

    def modes(self) -> list[str]:
        """The proven modes of the group's members."""
        done = self.eosctl("workers", "probe")
        return [str(row["mode"]) for row in envelope_of(done, "workers-probe")["data"]["rows"]]

    def _path(self, kind: str = "statefulset") -> str:
        return f"/apis/apps/v1/namespaces/{self.namespace}/{kind}s"


def _ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def ended(process: subprocess.Popen[str]) -> Outcome:
    """Waits for a process, as long as a loaded machine may take."""
    stdout, stderr = process.communicate(timeout=400)
    return Outcome(process.returncode, stdout, stderr)
