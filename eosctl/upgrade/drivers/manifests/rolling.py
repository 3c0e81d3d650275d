"""The number of pods down at once while a workload's controller restarts them, from its manifest. Pure.

Source: Kubernetes, apps/v1: DeploymentSpec.strategy, RollingUpdateDeployment.maxUnavailable (rounded down),
RollingUpdateStatefulSetStrategy.maxUnavailable (rounded up), Container.readinessProbe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eosctl.core.wording import counted
from eosctl.upgrade import codes
from eosctl.upgrade.drivers.manifests.fields import Manifest
from eosctl.upgrade.gate import Gate


def several_at_once(manifest: Manifest, *, container: str | None = None) -> tuple[str, ...]:
    """Return why more than one pod may be down at once; empty if the controller waits for each."""
    spec = manifest.get("spec") or {}
    replicas = int(spec.get("replicas", 1))
    update = spec.get("strategy") or spec.get("updateStrategy") or {}
    if replicas < 2 or update.get("type") == "OnDelete":
        return ()
    found = []
    if update.get("type") == "Recreate":
        found.append("strategy Recreate stops all pods before the first new one starts")
    down = _unavailable(update.get("rollingUpdate") or {}, replicas, rounds_up="updateStrategy" in spec)
    if down > 1:
        found.append(f"maxUnavailable lets {counted(down, 'pod')} be down at once")
    containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or ()
    ours = [each for each in containers if container in (None, each.get("name"))]
    if ours and not any("readinessProbe" in each for each in ours):
        found.append("no container has a readinessProbe, so a pod counts as Ready as soon as its process runs")
    return tuple(found)


def _unavailable(rolling: Manifest, replicas: int, *, rounds_up: bool) -> int:
    """Return how many pods maxUnavailable allows to be down; Kubernetes' default if it is not set."""
    given = rolling.get("maxUnavailable")
    if given is None:
        return 1 if rounds_up else max(1, replicas // 4)
    text = str(given)
    if not text.endswith("%"):
        return int(text)
    percent = int(text.removesuffix("%")) * replicas
    return -(-percent // 100) if rounds_up else percent // 100


def judge_rolling(found: Mapping[str, Sequence[str]], *, accepted: bool) -> Gate:
    """Judge the gate workload_rolls for all workloads: name -> what `several_at_once` found."""
    failures = [f"{name}: {'; '.join(reasons)}" for name, reasons in found.items() if reasons]
    if failures:
        return Gate(codes.WORKLOAD_ROLLS, "fail", "; ".join(failures), codes.WORKLOAD_ROLLS.next, accepted=accepted)
    return Gate(codes.WORKLOAD_ROLLS, "pass", "one pod at a time is down while they are restarted")
