"""The driver `kubernetes`: changes the workload with kubectl and leaves the restarts to its controller.

StatefulSet and Deployment get the mode by an environment variable of the pod, a Strimzi KafkaConnect by its
spec.config. Their controllers restart pod after pod, so that a whole pass is one step.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from eosctl.core.upgrade import Mode
from eosctl.errors import UsageError
from eosctl.ops.app import App
from eosctl.ops.upgrade_drivers import SETTING, Acted
from eosctl.ops.upgrade_drivers.programs import run_program

DEFAULT_VARIABLE = "CONNECT_EXACTLY_ONCE_SOURCE_SUPPORT"
STRIMZI = "kafkaconnect"
KINDS = ("statefulset", "deployment", STRIMZI)


@dataclass(frozen=True, slots=True)
class KubernetesDriver:
    """`workload` is KIND/NAME; kubectl's current context is used."""

    name: ClassVar[str] = "kubernetes"
    at_once: ClassVar[bool] = True
    waits_for_person: ClassVar[bool] = False

    workload: str
    namespace: str | None = None
    variable: str = DEFAULT_VARIABLE

    def __post_init__(self) -> None:
        kind, _, name = self.workload.partition("/")
        if kind not in KINDS or not name:
            raise UsageError(f"--workload {self.workload} is none of {', '.join(f'{kind}/NAME' for kind in KINDS)}")

    def files(self, _workers: Sequence[str]) -> Sequence[Path]:
        """None are here."""
        return ()

    def actions(self, _workers: Sequence[str], mode: Mode) -> Sequence[str]:
        """The change; what follows is the controller's."""
        return [" ".join(self._change(mode)), "its controller restarts all workers, one after the other"]

    def bring(self, app: App, _workers: Sequence[str], mode: Mode) -> Acted:
        """Changes the workload and waits for its rollout."""
        run_program(app, self._change(mode))
        if not self.workload.startswith(f"{STRIMZI}/"):
            run_program(app, self._kubectl("rollout", "status", self.workload))
        return Acted(f"{self.workload} changed")

    def _change(self, mode: Mode) -> list[str]:
        if self.workload.startswith(f"{STRIMZI}/"):
            patch = json.dumps({"spec": {"config": {SETTING: mode.value}}})
            return self._kubectl("patch", self.workload, "--type", "merge", "--patch", patch)
        return self._kubectl("set", "env", self.workload, f"{self.variable}={mode.value}")

    def _kubectl(self, *words: str) -> list[str]:
        return ["kubectl", *(["--namespace", self.namespace] if self.namespace else []), *words]
