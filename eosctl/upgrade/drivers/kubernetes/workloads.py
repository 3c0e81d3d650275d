"""Names of Kubernetes workloads, and facts from their JSON and that of their pods.

Reads the members of objects that Kubernetes documents for apps/v1 (`spec.updateStrategy`, `status.updateRevision`, …);
`status.currentRevision` stays behind for good with OnDelete (kubernetes issue 73492), so nothing is made of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.clients.hidden_secrets import shown_line
from eosctl.errors import UsageError
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl, section
from eosctl.upgrade.drivers.manifests.fields import Manifest
from eosctl.upgrade.drivers.manifests.pods import Pod

STATEFUL_SET, DEPLOYMENT, POD_SET = "statefulset", "deployment", "strimzipodset"
STRIMZI, MIRROR_MAKER, CONFLUENT = "kafkaconnect", "kafkamirrormaker2", "connect"
_GROUPS = {STRIMZI: "kafka.strimzi.io", MIRROR_MAKER: "kafka.strimzi.io", CONFLUENT: "platform.confluent.io"}
_SPELLINGS = {
    STATEFUL_SET: ("sts", "statefulset", "statefulsets", "statefulset.apps", "statefulsets.apps"),
    DEPLOYMENT: ("deploy", "deployment", "deployments", "deployment.apps", "deployments.apps"),
    STRIMZI: ("kc", "kafkaconnect", "kafkaconnects"),
    MIRROR_MAKER: ("kmm2", "kafkamirrormaker2", "kafkamirrormaker2s"),
    CONFLUENT: ("connect", "connects"),
    POD_SET: ("sps", "strimzipodset", "strimzipodsets"),
}
# kind -> its name in the labels of the pods, and what its pod set is called
_OPERATED = {STRIMZI: ("KafkaConnect", "connect"), MIRROR_MAKER: ("KafkaMirrorMaker2", "mirrormaker2")}
_STRIMZI_REPLICAS = 3  # where a resource of v1beta2 does not say it; v1 must
_KINDS = {spelling: kind for kind, spellings in _SPELLINGS.items() for spelling in spellings}
_REVISION_LABELS = ("controller-revision-hash", "pod-template-hash")
_ENDED = ("Succeeded", "Failed")


class Workload(Struct, frozen=True):
    """One workload; `text` is its name for kubectl.

    `config` is where the worker's config is in a resource of Strimzi's; a number there is the place in a list.
    `container` is the worker's in the pods of the others, once it was found.
    """

    kind: str
    name: str
    text: str
    config: tuple[str | int, ...] = ("spec", "config")
    container: str | None = None

    @property
    def is_strimzi(self) -> bool:
        """True if Strimzi's operator makes the pods, and changes them."""
        return self.kind in _OPERATED

    @property
    def is_operated(self) -> bool:
        """True if it has the mode in a spec of its own, from which an operator makes the pods."""
        return self.kind in _GROUPS

    @property
    def pod_set(self) -> str:
        """The pod set that Strimzi's operator makes of this resource."""
        return f"{POD_SET}/{self.name}-{_OPERATED[self.kind][1]}"


def parse_workload(given: str) -> Workload:
    """Parse `KIND/NAME`, in kubectl's spellings; raise UsageError for another kind."""
    kind, _, name = given.partition("/")
    resource, _, rest = kind.lower().partition(".")
    known = _KINDS.get(kind.lower()) or (_KINDS.get(resource) if rest.endswith(tuple(_GROUPS.values())) else None)
    if known == POD_SET and name:
        raise UsageError(
            f"--workload {given}: its operator reverts changes there",
            hint=f"Name what it is made from: --workload {_maker(name)}",
        )
    if known is None or not name or "/" in name:
        kinds = ", ".join(f"{kind}/NAME" for kind in (STATEFUL_SET, DEPLOYMENT, *_GROUPS))
        raise UsageError(f"--workload {given} is none of {kinds}")
    if known == CONFLUENT:  # short names like this one are other operators', too
        return Workload(known, name, f"connects.{rest or _GROUPS[CONFLUENT]}/{name}")
    versioned = known in _OPERATED and bool(rest.removesuffix(_GROUPS[known]))
    return Workload(known, name, f"{kind.lower()}/{name}" if versioned else f"{known}/{name}")


def _maker(pod_set: str) -> str:
    kind = next((kind for kind, (_label, last) in _OPERATED.items() if pod_set.endswith(f"-{last}")), STRIMZI)
    return f"{kind}/{pod_set.removesuffix(f'-{_OPERATED[kind][1]}')}"


def as_stored(app: App, kubectl: Kubectl, workload: Workload) -> Workload:
    """Name a Strimzi resource with the version in which it was written, and find the worker's config in it.

    kubectl takes the newest version that is served; a resource that was written in an older one may not be valid there.
    """
    if not workload.is_strimzi:
        return workload
    found = kubectl.get(app, workload.text, "--show-managed-fields")
    writers = [each for each in section(found, "metadata").get("managedFields") or () if not each.get("subresource")]
    newest = max(writers, key=lambda each: str(each.get("time", "")), default=found)
    group, _, version = str(newest.get("apiVersion", "")).rpartition("/")
    text = workload.text
    if version and newest.get("apiVersion") != found.get("apiVersion") and "." not in workload.text.partition("/")[0]:
        text = f"{workload.kind}s.{version}.{group}/{workload.name}"
    return replace(workload, text=text, config=_config_place(workload, found))


def _config_place(workload: Workload, found: Manifest) -> tuple[str | int, ...]:
    """Return the path of the worker's config: in v1 of MirrorMaker `spec.target.config`, before in a cluster's."""
    if workload.kind != MIRROR_MAKER:
        return ("spec", "config")
    spec = section(found, "spec")
    for number, cluster in enumerate(spec.get("clusters") or ()):
        if cluster.get("alias") == spec.get("connectCluster"):
            return ("spec", "clusters", number, "config")
    return ("spec", "target", "config")


def replicas(workload: Manifest) -> int:
    """Return how many pods the workload should have now."""
    default = _STRIMZI_REPLICAS if workload.get("kind") in {kind for kind, _last in _OPERATED.values()} else 1
    return int(section(workload, "spec").get("replicas", default))


def generation(workload: Manifest) -> int:
    """Return the generation of the spec: it grows with each change."""
    return int(section(workload, "metadata").get("generation", 0))


def observed(workload: Manifest) -> bool:
    """Decide whether the status is about the newest spec, which the controller handles later."""
    return int(section(workload, "status").get("observedGeneration", 0)) >= generation(workload)


def not_ready_condition(resource: Manifest) -> Manifest | None:
    """Return the condition that says why Strimzi's operator could not apply the newest spec; None if it could."""
    conditions = section(resource, "status").get("conditions") or ()
    return next((one for one in conditions if (one.get("type"), one.get("status")) == ("NotReady", "True")), None)


def rolled_out(workload: Manifest) -> bool:
    """Decide whether all pods are made from the newest spec and Ready, and no others are left."""
    status, wanted = section(workload, "status"), replicas(workload)
    counts = [int(status.get(name, 0)) for name in ("updatedReplicas", "replicas", "readyReplicas")]
    return observed(workload) and counts == [wanted] * len(counts)


def deletes_by_hand(workload: Manifest) -> bool:
    """Decide whether pods stay as they are until they are deleted (a StatefulSet's OnDelete)."""
    return section(workload, "spec", "updateStrategy").get("type") == "OnDelete"


def pod_names(stateful_set: Manifest) -> list[str]:
    """Return the names of a StatefulSet's pods, by their ordinals."""
    spec, name = section(stateful_set, "spec"), section(stateful_set, "metadata").get("name")
    first = int(section(spec, "ordinals").get("start", 0))
    return [f"{name}-{ordinal}" for ordinal in range(first, first + replicas(stateful_set))]


def pod_revision(pod: Manifest) -> str:
    """Return the revision of the workload from which the pod is made."""
    labels = section(pod, "metadata", "labels")
    return next((str(labels[name]) for name in _REVISION_LABELS if name in labels), "")


def pod_ready(pod: Manifest) -> bool:
    """Decide whether the pod is Ready and not being deleted."""
    conditions = section(pod, "status").get("conditions") or ()
    ready = any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)
    return ready and not _leaving(pod)


def pod_reason(pod: Manifest) -> str:
    """Return why a pod is not Ready, from its containers and conditions; empty if nothing shows it."""
    for status, told in _troubles(pod):
        said = section(status, "lastState", "terminated").get("message") or told.get("message") or ""
        lines = " / ".join(map(shown_line, str(said).strip().splitlines()))  # may be the container's log
        return ": ".join(part for part in (str(told["reason"]), lines) if part)
    for condition in section(pod, "status").get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"{condition.get('reason')}: {condition.get('message')}"
    return ""


def _troubles(pod: Manifest) -> Iterator[tuple[Manifest, Manifest]]:
    """Yield the containers that do not run, with the state that says why; those that wait for init containers last."""
    found = section(pod, "status")
    statuses = [*(found.get("initContainerStatuses") or ()), *(found.get("containerStatuses") or ())]
    told = [(each, section(each, "state", state)) for each in statuses for state in ("waiting", "terminated")]
    named = [(each, state) for each, state in told if state.get("reason") not in (None, "Completed")]
    yield from sorted(named, key=lambda pair: pair[1]["reason"] == "PodInitializing")


def _troubled_container(pod: Manifest) -> str:
    """Return the container that does not run, or that runs and is not ready."""
    unready = (each for each in section(pod, "status").get("containerStatuses") or () if not each.get("ready"))
    found = next((status for status, _told in _troubles(pod)), None) or next(unready, {})
    return str(found.get("name", ""))


def rolled(app: App, kubectl: Kubectl, workload: Workload, now: Manifest) -> tuple[Workload, Manifest]:
    """Return the workload whose controller restarts the pods: this one, or the StatefulSet of Confluent's operator."""
    if workload.kind != CONFLUENT:
        return workload, now
    made = Workload(STATEFUL_SET, workload.name, f"{STATEFUL_SET}/{workload.name}")
    return made, kubectl.get(app, made.text)


def list_pods(app: App, kubectl: Kubectl, workload: Workload, manifest: Manifest) -> list[Pod]:
    """List the workload's pods, without those that end or have ended."""
    workload, manifest = rolled(app, kubectl, workload, manifest)
    found = kubectl.list_pods(app, _selector(workload, manifest))
    return [_pod(each, workload) for each in found if not _leaving(each) and _is_of(each, workload)]


def _leaving(pod: Manifest) -> bool:
    return "deletionTimestamp" in section(pod, "metadata") or section(pod, "status").get("phase") in _ENDED


def _is_of(pod: Manifest, workload: Workload) -> bool:
    """Decide whether the workload owns the pod; only StatefulSets own theirs directly, so only they are checked."""
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
        uid=str(metadata.get("uid", "")),
        created=str(metadata.get("creationTimestamp", "")),
        container="" if ready else _troubled_container(pod),
    )


def _selector(workload: Workload, manifest: Manifest) -> str:
    """Return the label selector for `kubectl get pods --selector`."""
    if workload.is_strimzi:
        return f"strimzi.io/cluster={workload.name},strimzi.io/kind={_OPERATED[workload.kind][0]}"
    selector = section(manifest, "spec", "selector")
    labels = [f"{key}={value}" for key, value in section(selector, "matchLabels").items()]
    return ",".join([*labels, *(_expression(each) for each in selector.get("matchExpressions") or ())])


def _expression(expression: Manifest) -> str:
    key, values = str(expression["key"]), ",".join(expression.get("values") or ())
    told = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key, "DoesNotExist": f"!{key}"}
    return told[str(expression["operator"])]


def names_of(workloads: Sequence[Workload]) -> str:
    """Name the workloads, for a sentence."""
    return ", ".join(each.text for each in workloads)
