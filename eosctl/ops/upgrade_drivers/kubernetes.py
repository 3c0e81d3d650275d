"""The driver `kubernetes`: changes the workload with kubectl, whose controller or operator then restarts the pods.

StatefulSet and Deployment get the mode by an environment variable of the pod, a Strimzi KafkaConnect by its
spec.config. Their controllers restart pod after pod, so that a whole pass is one step. Who says `OnDelete` has a
controller that doesn't: there eosctl deletes the pods (pods.py). It never changes how a workload is updated.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from eosctl.core.upgrade import Mode
from eosctl.core.wording import counted
from eosctl.errors import RefusedError, UsageError
from eosctl.ops.app import App
from eosctl.ops.upgrade_drivers import SETTING, Acted
from eosctl.ops.upgrade_drivers.kubectl import (
    Kubectl,
    Manifest,
    deletes_by_hand,
    generation,
    observed,
    poll,
    rolled_out,
    section,
)
from eosctl.ops.upgrade_drivers.pods import replace_pods

DEFAULT_VARIABLE = "CONNECT_EXACTLY_ONCE_SOURCE_SUPPORT"
STRIMZI = "kafkaconnect"
KINDS = ("statefulset", "deployment", STRIMZI)
_POD_SET = "strimzipodset"
_RESTART = "strimzi.io/manual-rolling-update"
_PAUSE = "strimzi.io/pause-reconciliation"


def kubernetes_driver(app: App, workload: str, namespace: str | None, variable: str | None) -> KubernetesDriver:
    """The driver for the workload as it is now.

    Raises UsageError for another kind, NotFoundError, RefusedError where not all of its pods would be restarted, and
    what kubectl raises.
    """
    driver = KubernetesDriver(workload, namespace, variable or DEFAULT_VARIABLE)
    return replace(driver, deletes_pods=deletes_by_hand(driver.look(app)))


@dataclass(frozen=True, slots=True)
class KubernetesDriver:
    """`workload` is KIND/NAME; kubectl's current context is used. `deletes_pods`: nobody else restarts them."""

    name: ClassVar[str] = "kubernetes"
    at_once: ClassVar[bool] = True
    waits_for_person: ClassVar[bool] = False

    workload: str
    namespace: str | None = None
    variable: str = DEFAULT_VARIABLE
    deletes_pods: bool = False

    def __post_init__(self) -> None:
        kind, _, name = self.workload.partition("/")
        if kind == _POD_SET and name:
            raise UsageError(
                f"--workload {self.workload}: its operator takes back what is changed there",
                hint=f"Name what it is made from: --workload {STRIMZI}/{name.removesuffix('-connect')}",
            )
        if kind not in KINDS or not name:
            raise UsageError(f"--workload {self.workload} is none of {', '.join(f'{kind}/NAME' for kind in KINDS)}")

    def look(self, app: App) -> Manifest:
        """The workload as it is now; raises RefusedError where not all of its pods would be restarted."""
        now = self._kubectl.get(app, self.workload)
        reason, command = _not_rolling(self.workload, now)
        if reason:
            raise RefusedError(f"{self.workload} {reason}; nothing was written", hint=f"Change that first: {command}")
        return now

    def files(self, _workers: Sequence[str]) -> Sequence[Path]:
        """None are here."""
        return ()

    def actions(self, _workers: Sequence[str], mode: Mode) -> Sequence[str]:
        """The change, and who restarts the pods."""
        rest = "its controller restarts all workers, one after the other"
        if self.deletes_pods:
            rest = "kubectl delete pod, one after the other (updateStrategy OnDelete), the leader's last"
        return [shlex.join(self._kubectl.words(*self._change(mode))), rest]

    def check(self, app: App, workers: Sequence[str]) -> None:
        """The workload has a pod for each of them."""
        replicas = int(section(self.look(app), "spec").get("replicas", 1))
        if len(workers) > replicas:
            raise RefusedError(
                f"{self.workload} has {counted(replicas, 'pod')}, and the group {counted(len(workers), 'member')}: "
                f"not all of {', '.join(workers)} are its pods, and the others would keep their mode; "
                "nothing was written",
                hint="Stop the others, or change all of them with another driver (print, command).",
            )

    def bring(self, app: App, workers: Sequence[str], mode: Mode) -> Acted:
        """Changes the workload and waits for its rollout; where nothing has to be changed it is restarted as it is."""
        before = self.look(app)
        self._kubectl.run(app, *self._change(mode))
        now = self._kubectl.get(app, self.workload)
        if self._strimzi:
            if generation(now) == generation(before):
                self._restart_pod_set(app)
            self._await_operator(app)
            return Acted(f"{self.workload} changed")
        if generation(now) == generation(before) and rolled_out(now):
            self._kubectl.run(app, "rollout", "restart", self.workload)
        if deletes_by_hand(now):
            replace_pods(app, self._kubectl, self.workload, mode, members=len(workers))
            return Acted(f"{self.workload} changed, its pods deleted one by one")
        self._kubectl.run(app, "rollout", "status", self.workload)
        return Acted(f"{self.workload} changed")

    def _restart_pod_set(self, app: App) -> None:
        """Asks Strimzi's operator for a restart; it takes the annotation away when all pods are restarted."""
        pod_set = f"{_POD_SET}/{self.workload.partition('/')[2]}-connect"
        self._kubectl.run(app, "annotate", "--overwrite", pod_set, f"{_RESTART}=true")

        def restarted() -> bool:
            return _RESTART not in section(self._kubectl.get(app, pod_set), "metadata", "annotations")

        poll(app, f"Strimzi's operator to restart the pods of {pod_set}", restarted)

    def _await_operator(self, app: App) -> None:
        """Strimzi's operator says so when it is through with a change, restarts included."""
        done = f"Strimzi's operator to be through with {self.workload}"
        poll(app, done, lambda: observed(self._kubectl.get(app, self.workload)))

    def _change(self, mode: Mode) -> list[str]:
        if self._strimzi:
            patch = json.dumps({"spec": {"config": {SETTING: mode.value}}})
            return ["patch", self.workload, "--type", "merge", "--patch", patch]
        return ["set", "env", self.workload, f"{self.variable}={mode.value}"]

    @property
    def _strimzi(self) -> bool:
        return self.workload.startswith(f"{STRIMZI}/")

    @property
    def _kubectl(self) -> Kubectl:
        return Kubectl(self.namespace)


def _not_rolling(workload: str, now: Manifest) -> tuple[str, str]:
    """Why a change would not reach all pods, and the kubectl that mends it; empty where it would."""
    partition = section(now, "spec", "updateStrategy", "rollingUpdate").get("partition") or 0
    if partition and not deletes_by_hand(now):
        patch = json.dumps({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
        reason = f"has updateStrategy.rollingUpdate.partition {partition}: pods below that ordinal keep the old mode"
        return reason, f"kubectl patch {workload} --type merge --patch '{patch}'"
    if section(now, "spec").get("paused"):
        return "is paused: its pods would not be restarted", f"kubectl rollout resume {workload}"
    if section(now, "metadata", "annotations").get(_PAUSE) == "true":
        return "is paused: Strimzi's operator would not restart its pods", f"kubectl annotate {workload} {_PAUSE}-"
    return "", ""
