"""The pods of a Connect group's members, and the deployer of a Kubernetes object. Pure.

Pods are matched by the address or name that a worker advertises. A group and a workload are named separately by hand,
and two groups often have the same number of workers.

The deployer is found by its tool's traces, with what must be changed there. What eosctl sets in the cluster is not in
the chart or in Git: the next deploy reverts it, and so brings disabled workers beside enabled ones.

Sources: Helm, "Labels and Annotations" (meta.helm.sh/…); Argo CD, "Resource Tracking"; Flux, kustomize-controller and
helm-controller ("Reconciliation": labels of the applied objects); kubectl apply (last-applied-configuration).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from urllib.parse import urlsplit

from msgspec import Struct

from eosctl.upgrade import codes
from eosctl.upgrade.drivers.manifests.fields import Manifest, Named, Path, Writer, value_at, writers_of
from eosctl.upgrade.gate import Gate

_POD_DNS = 3  # POD.SERVICE.NAMESPACE and more


class Pod(Struct, frozen=True):
    """A pod that is not being deleted; `reason` is why it is not Ready, `container` the one that is not ready.

    `created` is a time in RFC 3339.
    """

    name: str
    namespace: str
    workload: str
    addresses: tuple[str, ...]
    hostname: str
    ready: bool
    reason: str = ""
    revision: str = ""
    uid: str = ""
    container: str = ""
    created: str = ""


class Member(Struct, frozen=True):
    """A member of the group: the address that it advertises, and the host from which it is connected."""

    url: str | None
    client_host: str | None


class PodMatch(Struct, frozen=True):
    """The match of pods and members: `pods` without a member, `members` (URLs or addresses) without a pod."""

    count: int
    pods: tuple[Pod, ...]
    members: tuple[str, ...]


def match_pods(pods: Collection[Pod], members: Iterable[Member]) -> PodMatch:
    """Find a pod for each member; a pod matches one member only."""
    left, strangers, count = list(pods), [], 0
    for member in members:
        mine = next((pod for pod in left if _is_in(member, pod)), None)
        if mine is None:
            strangers.append(member.url or (member.client_host or "?").removeprefix("/"))
        else:
            left.remove(mine)
            count += 1
    return PodMatch(count, tuple(left), tuple(sorted(strangers)))


def _is_in(member: Member, pod: Pod) -> bool:
    """Decide whether the member is in the pod; a name in another namespace is no match: StatefulSets share names."""
    host = (urlsplit(member.url).hostname or "") if member.url else ""
    if {host, (member.client_host or "").removeprefix("/")} & {*pod.addresses}:
        return True
    labels = host.split(".")
    if len(labels) >= _POD_DNS and labels[2] != pod.namespace and "svc" in labels[3:4]:
        return False
    return labels[0] in (pod.name, pod.hostname)


def judge_workload(
    workloads: Sequence[str], pods: Sequence[Pod], members: Sequence[Member], *, accepted: bool, complete: bool
) -> Gate:
    """Judge the gate workload_matches; `complete` also requires a member in each pod."""
    named = ", ".join(workloads)
    found = match_pods(pods, members)
    failures = []
    if found.members:
        there = ", ".join(_told(pod) for pod in pods) or "none"
        failures.append(f"{', '.join(found.members)} is in no pod of {named} (pods: {there})")
    missing = [f"{pod.name} ({pod.reason})" if pod.reason else pod.name for pod in found.pods]
    if missing and complete:
        failures.append(f"no member of the group is in {', '.join(missing)}")
    if failures:
        return Gate(
            codes.WORKLOAD_MATCHES,
            "fail",
            "; ".join(failures),
            codes.WORKLOAD_MATCHES.next,
            guards_data=True,
            accepted=accepted,
        )
    return Gate(codes.WORKLOAD_MATCHES, "pass", f"{found.count} of {len(members)} members are in the pods of {named}")


def _told(pod: Pod) -> str:
    return " ".join([pod.name, *pod.addresses[:1]])


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_ARGO, _FLUX, _HELM, _APPLY = "Argo CD", "Flux", "Helm", "kubectl apply"
# field manager -> the tool
_MANAGERS = {
    "argocd-controller": _ARGO,
    "argocd-application-controller": _ARGO,
    "kustomize-controller": _FLUX,
    "helm-controller": _FLUX,
    "helm": _HELM,
    "kubectl-client-side-apply": _APPLY,
}
_BY_HAND = "kubectl-"  # kubectl-set, kubectl-patch, kubectl-edit, kubectl-create, …
_CHANGE = {
    _ARGO: "Change it in Git; a sync reverts changes made here.",
    _FLUX: "Change it in Git; the next reconciliation reverts changes made here.",
    _HELM: "Change it in the chart's values; the next `helm upgrade` reverts changes made here.",
    _APPLY: "Change it in the manifest; the next `kubectl apply` reverts changes made here.",
}


class Deployer(Struct, frozen=True):
    """The `tool` that deploys an object, and its name for what it deploys."""

    tool: str
    name: str = ""

    @property
    def words(self) -> str:
        """The deployer, for a sentence."""
        return f"{self.tool} ({self.name})" if self.name else self.tool


class Origin(Struct, frozen=True):
    """The field of the mode, and who deploys its object; `held`: that tool's manifest has the field.

    `held` is None where nothing shows it.
    """

    thing: str
    field: str
    deployer: Deployer | None
    held: bool | None

    def words(self, values: Sequence[str]) -> str:
        """Describe what must be changed, and where; `values` are those that the field must have, in order."""
        wanted = ", then ".join(values)
        if self.deployer is None:
            return (
                f"{self.thing} does not say what deploys it: where it is deployed from, {self.field} must be {wanted}"
            )
        if self.held is False:
            return (
                f"{self.thing} is deployed by {self.deployer.words}, which does not set {self.field}: add it there "
                f"({wanted}), or a new install lacks it"
            )
        change = _CHANGE.get(self.deployer.tool, "Change it there, or its next deploy takes it back.")
        return f"{self.thing} is deployed by {self.deployer.words}: {self.field} must be {wanted}. {change}"


def origin_of_field(thing: str, manifest: Manifest, path: Path, *, words: str) -> Origin:
    """Return who deploys an object (read with managed fields) and whether they set the field, named by `words`."""
    deployer = deployer_of(manifest, path)
    return Origin(thing, words, deployer, _held(manifest, path, deployer))


def deployer_of(manifest: Manifest, path: Path) -> Deployer | None:
    """Return the tool that will deploy again; if one renders another's charts, the outer one."""
    metadata = manifest.get("metadata") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    tracked = str(annotations.get("argocd.argoproj.io/tracking-id", "")).partition(":")[0]
    argo = tracked or labels.get("argocd.argoproj.io/instance")
    tools = [tool for tool in map(tool_of, writers_of(manifest, ())) if tool]
    if argo or _ARGO in tools:
        return Deployer(_ARGO, f"application {argo}" if argo else "")
    for kind, prefix in (("Kustomization", "kustomize"), ("HelmRelease", "helm")):
        name = labels.get(f"{prefix}.toolkit.fluxcd.io/name")
        if name:
            return Deployer(_FLUX, f"{kind} {labels.get(f'{prefix}.toolkit.fluxcd.io/namespace')}/{name}")
    if _FLUX in tools:
        return Deployer(_FLUX)
    release = annotations.get("meta.helm.sh/release-name")
    if release:
        return Deployer(_HELM, f"release {release} in {annotations.get('meta.helm.sh/release-namespace')}")
    if LAST_APPLIED in annotations or _APPLY in tools:
        return Deployer(_APPLY)
    others = [each for each in writers_of(manifest, path[:-1]) if not each.manager.startswith(_BY_HAND)]
    return Deployer(others[-1].manager) if others else None


def tool_of(writer: Writer) -> str | None:
    """Return the tool of a field manager; None for others and for manual changes."""
    if writer.manager == "kubectl" and writer.operation == "Apply":
        return _APPLY
    return _MANAGERS.get(writer.manager)


def writer_words(writer: Writer) -> str:
    """Describe who wrote a field."""
    tool = tool_of(writer)
    return f"{tool} ({writer.manager})" if tool else writer.manager


def _held(manifest: Manifest, path: Path, deployer: Deployer | None) -> bool | None:
    """Decide whether the tool sets the field: others may own the value by now, but not the element around it."""
    if deployer is None:
        return None
    applied = ((manifest.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
    if applied is not None:
        try:
            return value_at(json.loads(applied), path) is not None
        except ValueError:
            return None
    is_element = isinstance(path[-2], Named)
    owners = {tool_of(each) or each.manager for each in writers_of(manifest, path[:-1] if is_element else path)}
    if deployer.tool in owners:
        return True
    return None if owners and not is_element else False
