"""kubectl as a program on PATH, in its current context: how it is run, and what its JSON says of a workload.

Reads the members of objects that Kubernetes documents for apps/v1 (`spec.updateStrategy`, `status.updateRevision`, …);
`status.currentRevision` stays behind for good with OnDelete (kubernetes issue 73492), so nothing is made of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from eosctl.errors import DeadlineError, EosctlError, NotFoundError
from eosctl.ops.app import App
from eosctl.ops.upgrade_drivers.programs import run_program

Manifest = Mapping[str, Any]
REVISION_LABEL = "controller-revision-hash"
_POLL_S = 1.0


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl in one namespace; None is that of its context."""

    namespace: str | None = None

    def words(self, *words: str) -> list[str]:
        """The command line."""
        return ["kubectl", *(["--namespace", self.namespace] if self.namespace else []), *words]

    def run(self, app: App, *words: str) -> None:
        """Runs it; raises what `run_program` raises."""
        run_program(app, self.words(*words))

    def find(self, app: App, what: str) -> Manifest | None:
        """The object KIND/NAME as it is now; None where there is none. Raises EosctlError for anything else."""
        said = run_program(app, self.words("get", what, "--ignore-not-found", "--output", "json"))
        if not said.strip():
            return None
        try:
            found = json.loads(said)
        except ValueError as exc:
            raise EosctlError(f"kubectl get {what} answered with something else than JSON") from exc
        if not isinstance(found, dict):
            raise EosctlError(f"kubectl get {what} answered with something else than an object")
        return found

    def get(self, app: App, what: str) -> Manifest:
        """The object KIND/NAME as it is now; raises NotFoundError."""
        found = self.find(app, what)
        if found is None:
            where = f"namespace {self.namespace}" if self.namespace else "the namespace of kubectl's context"
            raise NotFoundError(f"there is no {what} in {where}", hint="Check --workload, --namespace and the context.")
        return found


def poll(app: App, doing: str, done: Callable[[], bool]) -> None:
    """Asks until `done`, as long as the App's time lasts; raises DeadlineError."""
    while not done():
        if app.deadline.expired():
            raise DeadlineError(
                f"timed out after {app.deadline.timeout_s:g} s while waiting for {doing}",
                hint="See its events with `kubectl describe`; --settle-timeout gives more time.",
            )
        app.clock.sleep_s(_POLL_S)


def section(manifest: Manifest, *path: str) -> Manifest:
    """A member that is an object; empty where it is left out."""
    found: object = manifest
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return cast("Manifest", found) if isinstance(found, Mapping) else {}


def generation(workload: Manifest) -> int:
    """Which change of its spec this is: it grows with each."""
    return int(section(workload, "metadata").get("generation", 0))


def observed(workload: Manifest) -> bool:
    """Whether its status is about its newest spec: the controller comes later."""
    return int(section(workload, "status").get("observedGeneration", 0)) >= generation(workload)


def rolled_out(workload: Manifest) -> bool:
    """Whether all pods are made from its newest spec."""
    updated = int(section(workload, "status").get("updatedReplicas", 0))
    return observed(workload) and updated >= int(section(workload, "spec").get("replicas", 1))


def deletes_by_hand(workload: Manifest) -> bool:
    """Whether its pods stay as they are until somebody deletes them (a StatefulSet's OnDelete)."""
    return section(workload, "spec", "updateStrategy").get("type") == "OnDelete"


def pod_names(stateful_set: Manifest) -> list[str]:
    """The pods of a StatefulSet, by their ordinals."""
    spec, name = section(stateful_set, "spec"), section(stateful_set, "metadata").get("name")
    first = int(section(spec, "ordinals").get("start", 0))
    return [f"{name}-{ordinal}" for ordinal in range(first, first + int(spec.get("replicas", 1)))]


def pod_revision(pod: Manifest) -> str:
    """Which revision of its StatefulSet the pod is made from."""
    return str(section(pod, "metadata", "labels").get(REVISION_LABEL, ""))


def pod_ready(pod: Manifest) -> bool:
    """Whether it is Ready, and not on its way out."""
    conditions = section(pod, "status").get("conditions") or ()
    ready = any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)
    return ready and "deletionTimestamp" not in section(pod, "metadata")
