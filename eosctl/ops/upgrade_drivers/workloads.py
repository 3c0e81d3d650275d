"""What a workload of Kubernetes is called, and what its JSON and that of its pods say.

Reads the members of objects that Kubernetes documents for apps/v1 (`spec.updateStrategy`, `status.updateRevision`, …);
`status.currentRevision` stays behind for good with OnDelete (kubernetes issue 73492), so nothing is made of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eosctl.core.workload_pods import Pod
from eosctl.errors import UsageError
from eosctl.ops.app import App
from eosctl.ops.upgrade_drivers.kubectl import Kubectl, Manifest, section

STATEFUL_SET, DEPLOYMENT, STRIMZI, POD_SET = "statefulset", "deployment", "kafkaconnect", "strimzipodset"
_STRIMZI_GROUP = "kafka.strimzi.io"
_SPELLINGS = {
    STATEFUL_SET: ("sts", "statefulset", "statefulsets", "statefulset.apps", "statefulsets.apps"),
    DEPLOYMENT: ("deploy", "deployment", "deployments", "deployment.apps", "deployments.apps"),
    STRIMZI: ("kc", "kafkaconnect", "kafkaconnects", f"kafkaconnects.{_STRIMZI_GROUP}"),
    POD_SET: ("sps", "strimzipodset", "strimzipodsets"),
}
_KINDS = {spelling: kind for kind, spellings in _SPELLINGS.items() for spelling in spellings}
_REVISION_LABELS = ("controller-revision-hash", "pod-template-hash")
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload: `text` is what kubectl is given."""

    kind: str
    name: str
    text: str

    @property
    def is_strimzi(self) -> bool:
        """Whether an operator makes the pods, and changes them."""
        return self.kind == STRIMZI


def parse_workload(given: str) -> Workload:
    """`KIND/NAME`, in kubectl's spellings; raises UsageError for another kind."""
    kind, _, name = given.partition("/")
    resource, _, rest = kind.lower().partition(".")
    known = _KINDS.get(kind.lower()) or (_KINDS.get(resource) if rest.endswith(_STRIMZI_GROUP) else None)
    if known == POD_SET and name:
        raise UsageError(
            f"--workload {given}: its operator takes back what is changed there",
            hint=f"Name what it is made from: --workload {STRIMZI}/{name.removesuffix('-connect')}",
        )
    if known is None or not name or "/" in name:
        kinds = ", ".join(f"{kind}/NAME" for kind in (STATEFUL_SET, DEPLOYMENT, STRIMZI))
        raise UsageError(f"--workload {given} is none of {kinds}")
    versioned = known == STRIMZI and bool(rest.removesuffix(_STRIMZI_GROUP))
    return Workload(known, name, f"{kind.lower()}/{name}" if versioned else f"{known}/{name}")


def replicas(workload: Manifest) -> int:
    """How many pods it shall have now."""
    return int(section(workload, "spec").get("replicas", 1))


def generation(workload: Manifest) -> int:
    """Which change of its spec this is: it grows with each."""
    return int(section(workload, "metadata").get("generation", 0))


def observed(workload: Manifest) -> bool:
    """Whether its status is about its newest spec: the controller comes later."""
    return int(section(workload, "status").get("observedGeneration", 0)) >= generation(workload)


def rolled_out(workload: Manifest) -> bool:
    """Whether all pods are made from its newest spec and are ready, and no others are left."""
    status, wanted = section(workload, "status"), replicas(workload)
    counts = [int(status.get(name, 0)) for name in ("updatedReplicas", "replicas", "readyReplicas")]
    return observed(workload) and counts == [wanted] * len(counts)


def deletes_by_hand(workload: Manifest) -> bool:
    """Whether its pods stay as they are until somebody deletes them (a StatefulSet's OnDelete)."""
    return section(workload, "spec", "updateStrategy").get("type") == "OnDelete"


def template_variable(workload: Manifest, name: str) -> str | None:
    """The value that the containers of its pods have for an environment variable; None where they differ or lack it."""
    containers = section(workload, "spec", "template", "spec").get("containers") or ()
    said = {str(each.get("value")) for one in containers for each in one.get("env") or () if each.get("name") == name}
    return said.pop() if len(said) == 1 else None


def pod_names(stateful_set: Manifest) -> list[str]:
    """The pods of a StatefulSet, by their ordinals."""
    spec, name = section(stateful_set, "spec"), section(stateful_set, "metadata").get("name")
    first = int(section(spec, "ordinals").get("start", 0))
    return [f"{name}-{ordinal}" for ordinal in range(first, first + replicas(stateful_set))]


def pod_revision(pod: Manifest) -> str:
    """Which revision of its workload the pod is made from."""
    labels = section(pod, "metadata", "labels")
    return next((str(labels[name]) for name in _REVISION_LABELS if name in labels), "")


def pod_ready(pod: Manifest) -> bool:
    """Whether it is Ready, and not on its way out."""
    conditions = section(pod, "status").get("conditions") or ()
    ready = any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)
    return ready and not _leaving(pod)


def pod_reason(pod: Manifest) -> str:
    """Why a pod is not Ready, as its containers and conditions have it; empty where nothing says so."""
    for status in section(pod, "status").get("containerStatuses") or ():
        for waiting in (section(status, "state", "waiting"), section(status, "state", "terminated")):
            if waiting.get("reason"):
                said = section(status, "lastState", "terminated").get("message") or waiting.get("message") or ""
                return ": ".join(part for part in (str(waiting["reason"]), str(said).strip()) if part)
    for condition in section(pod, "status").get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"{condition.get('reason')}: {condition.get('message')}"
    return ""


def list_pods(app: App, kubectl: Kubectl, workload: Workload, manifest: Manifest) -> list[Pod]:
    """The pods that the workload has, without those that end or have ended."""
    found = kubectl.list_pods(app, _selector(workload, manifest))
    return [_pod(each, workload) for each in found if not _leaving(each) and _is_of(each, workload)]


def _leaving(pod: Manifest) -> bool:
    return "deletionTimestamp" in section(pod, "metadata") or section(pod, "status").get("phase") in _ENDED


def _is_of(pod: Manifest, workload: Workload) -> bool:
    """A StatefulSet owns its pods; those of a Deployment and of Strimzi have owners between."""
    owners = section(pod, "metadata").get("ownerReferences") or ()
    if workload.kind != STATEFUL_SET or not owners:
        return True
    return any(owner.get("kind") == "StatefulSet" and owner.get("name") == workload.name for owner in owners)


def _pod(pod: Manifest, workload: Workload) -> Pod:
    metadata, status = section(pod, "metadata"), section(pod, "status")
    addresses = [status.get("podIP"), *(each.get("ip") for each in status.get("podIPs") or ())]
    name = str(metadata.get("name"))
    ready = pod_ready(pod)
    return Pod(
        name=name,
        namespace=str(metadata.get("namespace", "")),
        workload=workload.text,
        addresses=tuple(dict.fromkeys(str(each) for each in addresses if each)),
        hostname=str(section(pod, "spec").get("hostname") or name),
        ready=ready,
        reason="" if ready else pod_reason(pod) or "not Ready",
        revision=pod_revision(pod),
    )


def _selector(workload: Workload, manifest: Manifest) -> str:
    """What `kubectl get pods --selector` takes."""
    if workload.is_strimzi:
        return f"strimzi.io/cluster={workload.name},strimzi.io/kind=KafkaConnect"
    selector = section(manifest, "spec", "selector")
    labels = [f"{key}={value}" for key, value in section(selector, "matchLabels").items()]
    return ",".join([*labels, *(_expression(each) for each in selector.get("matchExpressions") or ())])


def _expression(expression: Manifest) -> str:
    key, values = str(expression["key"]), ",".join(expression.get("values") or ())
    told = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key, "DoesNotExist": f"!{key}"}
    return told[str(expression["operator"])]


def names_of(workloads: Sequence[Workload]) -> str:
    """The workloads, for a sentence."""
    return ", ".join(each.text for each in workloads)
