"""A Connect group in the pods of a StatefulSet, on the kubectl of the tests: what `upgrade apply` does there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.report import Report
from eosctl.upgrade.drivers.kubernetes.driver import kubernetes_driver
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl
from eosctl.upgrade.drivers.kubernetes.mode_places import MountedProperties
from eosctl.upgrade.roll.prepare import PreparedRoll, RollRequest, prepare_roll
from eosctl.upgrade.roll.roll import apply_roll
from tests.fakes.faults import EVERY, Call
from tests.fakes.kubectl import Cluster
from tests.fakes.rolling import RollWorld

ON_DELETE = {"updateStrategy": {"type": "OnDelete"}}
CONNECT = "statefulset/connect"
VARIABLE = "CONNECT_EXACTLY_ONCE_SOURCE_SUPPORT"
SETTING = "exactly.once.source.support"
FIELD = f"spec.template.spec.containers[connect].env[{VARIABLE}].value"
KEYS = (
    "f:spec", "f:template", "f:spec", "f:containers", 'k:{"name":"connect"}', "f:env", f'k:{{"name":"{VARIABLE}"}}',
    "f:value",
)  # fmt: skip
FILE = MountedProperties("connect-config", "connect.properties")
TEXT = f"# the group\ngroup.id=g\n\n#{SETTING}=what it was\n  offset.storage.topic : offsets\n"


@dataclass
class Pods(RollWorld):
    """A worker in each pod of the StatefulSet `connect`, in the mode that it had when the pod was made."""

    cluster: Cluster = field(default_factory=lambda: Cluster(Path()))
    seen: dict[str, str] = field(default_factory=dict)
    held: bool = False  # workers that are recreated don't come up yet
    mode_of: Callable[[Cluster], str] = lambda cluster: cluster.variables(CONNECT).get(VARIABLE, "disabled")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.topics.before("read", self.follow)
        self.brokers.calls.before(EVERY, self.follow)
        self.connect.before("connectors", self.follow)

    def follow(self, _call: Call | None = None) -> None:
        """Pods that are deleted and recreated are workers that leave and come."""
        mode = self.mode_of(self.cluster)
        there = {f"http://{name}:8083": pod for name, pod in self.cluster.pods().items() if name.startswith("connect-")}
        for url in self.seen.keys() - there.keys():
            del self.seen[url]
            self.stop(url)
        for url, pod in there.items():
            if self.seen.get(url) == pod["metadata"]["uid"]:
                continue
            self.stop(url)
            if not self.held and pod["status"]["conditions"][0]["status"] == "True":
                self.seen[url], self.files[url] = pod["metadata"]["uid"], mode
                self.start(url)


def pods(cluster: Cluster, count: int, **spec: Any) -> Pods:
    """So many disabled workers, the first pod's leads."""
    cluster.add("statefulset/connect", pods=count, spec=spec)
    there = Pods({f"http://connect-{number}:8083": "disabled" for number in range(count)}, cluster=cluster)
    there.seen |= {f"http://{name}:8083": pod["metadata"]["uid"] for name, pod in cluster.pods().items()}
    return there


def prepare(
    there: Pods,
    state: Path,
    target: Mode | None = Mode.ENABLED,
    *,
    workloads: Sequence[str] = (CONNECT,),
    driver: Mapping[str, Any] | None = None,
    **request: Any,
) -> tuple[App, PreparedRoll]:
    """An upgrade as planned; `driver` are options of the driver's."""
    app = there.app(state)
    made = kubernetes_driver(app, workloads, Kubectl(), **driver or {})
    request = {"settle_timeout_s": 60.0, **request}
    return app, prepare_roll(app, RollRequest(target, **request), made)


def roll(there: Pods, state: Path, target: Mode | None = Mode.ENABLED, **request: Any) -> Report:
    return apply_roll(*prepare(there, state, target, **request))


def deleted(cluster: Cluster) -> list[str]:
    return [words[1] for words in cluster.calls() if words[0] == "delete"]


def template(env: list[dict[str, Any]], **spec: Any) -> dict[str, Any]:
    containers = [{"name": "connect", "env": env, "readinessProbe": {}}]
    return {"template": {"spec": {"containers": containers, **spec}}}


def mounting(cluster: Cluster, count: int = 2, **manifest: Any) -> Pods:
    """Workers whose pods mount a properties file."""
    cluster.add_configmap(FILE.configmap, data={FILE.key: TEXT, "other": "untouched"}, **manifest)
    volumes = [{"name": "config", "configMap": {"name": FILE.configmap}}]
    there = pods(cluster, count, **template([], volumes=volumes))
    there.mode_of = lambda cluster: mode_in(file_of(cluster))
    return there


def file_of(cluster: Cluster) -> str:
    return str(cluster.read(FILE.thing)["data"][FILE.key])


def mode_in(text: str) -> str:
    lines = [line.partition("=")[2] for line in text.splitlines() if line.startswith(SETTING)]
    return lines[-1] if lines else "disabled"


def set_by(cluster: Cluster, manager: str, value: str, *, time: str = "2026-02-01T00:00:00Z") -> None:
    """Somebody writes the variable of the template."""
    cluster.run(["set", "env", CONNECT, "--containers", "connect", f"{VARIABLE}={value}"])
    found = cluster.read(CONNECT)
    found["metadata"]["managedFields"] = []
    cluster.write(CONNECT, found)
    cluster.own(CONNECT, manager, *KEYS, time=time)


def look(cluster: Cluster, *, times: int) -> None:
    """Each look brings the controllers one step on."""
    for _time in range(times):
        cluster.run(["get", CONNECT, "--ignore-not-found", "--output", "json"])


def let_roll(cluster: Cluster, there: Pods) -> None:
    """The controllers restart what there is to restart, and the workers are back."""
    look(cluster, times=8)
    there.follow()
    there.settle()


def deploy_file(cluster: Cluster, mode: str, *, time: str = "2026-02-01T00:00:00Z") -> None:
    """What a GitOps tool does: nothing is restarted by it."""
    found = cluster.read(FILE.thing)
    found["data"][FILE.key] = f"{TEXT}{SETTING}={mode}\n"
    found["metadata"]["managedFields"] = []
    cluster.write(FILE.thing, found)
    cluster.own(FILE.thing, "argocd-controller", "f:data", f"f:{FILE.key}", time=time)
