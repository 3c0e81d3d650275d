"""A Connect group in the pods of a StatefulSet, on the kubectl of the tests: what `upgrade apply` does there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eosctl.core.upgrade import Mode
from eosctl.ops.app import App
from eosctl.ops.upgrade_apply import PreparedRoll, RollRequest, prepare_roll
from eosctl.ops.upgrade_drivers.kubectl import Kubectl
from eosctl.ops.upgrade_drivers.kubernetes import kubernetes_driver
from eosctl.ops.upgrade_roll import apply_roll
from eosctl.report import Report
from tests.fakes.faults import EVERY, Call
from tests.fakes.kubectl import Cluster
from tests.fakes.rolling import RollWorld

ON_DELETE = {"updateStrategy": {"type": "OnDelete"}}
CONNECT = "statefulset/connect"
VARIABLE = "CONNECT_EXACTLY_ONCE_SOURCE_SUPPORT"


@dataclass
class Pods(RollWorld):
    """A worker in each pod of the StatefulSet `connect`, in the mode that it had when the pod was made."""

    cluster: Cluster = field(default_factory=lambda: Cluster(Path()))
    seen: dict[str, str] = field(default_factory=dict)
    held: bool = False  # workers that are made anew don't come up yet
    mode_of: Callable[[Cluster], str] = lambda cluster: cluster.variables(CONNECT).get(VARIABLE, "disabled")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.topics.before("read", self.follow)
        self.brokers.calls.before(EVERY, self.follow)
        self.connect.before("connectors", self.follow)

    def follow(self, _call: Call | None = None) -> None:
        """Pods that are deleted and made anew are workers that leave and come."""
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
