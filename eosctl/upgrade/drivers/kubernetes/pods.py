"""Replaces the pods of a StatefulSet, deletes those that are stuck, and refuses workloads that would not keep a change.

Pods of a StatefulSet with `updateStrategy: OnDelete` are replaced one after the other, as no controller does. A pod is
deleted only when the one before is Ready and a stable member of the Connect group again. Pods of the newest revision
are left alone, so that a run can be resumed.

Pods of a StatefulSet that never get Ready are left alone by its controller, whatever becomes of its spec. Kubernetes,
"StatefulSets: forced rollback": such a pod must be deleted. eosctl deletes those that its plan named.

A workload is refused if an operator would revert a change, or the change would not reach all pods.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from urllib.parse import urlsplit

from msgspec import Struct

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Deadline, Event, Standing
from eosctl.errors import DeadlineError, EosctlError, RefusedError
from eosctl.foreign import shell_word
from eosctl.group.gather import read_group
from eosctl.group.members import STABLE, ConnectGroup
from eosctl.upgrade.drivers import SETTING
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl, for_a_look, poll, section
from eosctl.upgrade.drivers.kubernetes.workloads import (
    Workload,
    deletes_by_hand,
    observed,
    pod_names,
    pod_ready,
    pod_reason,
    pod_revision,
)
from eosctl.upgrade.drivers.manifests.fields import Manifest
from eosctl.upgrade.drivers.manifests.pods import Pod

_POLL_S = 1.0


class _Work(Struct, frozen=True):
    """The facts common to every pod: `revision` is that of new ones, `members` counts the workers that should be there.

    `members` is asked each time, as a workload may be scaled meanwhile. `require_kept` raises an error once somebody
    has reverted the change: a pod made then would have the former mode.
    """

    app: App
    kubectl: Kubectl
    mode: Mode
    revision: str
    members: Callable[[App], int]
    require_kept: Callable[[App], None]
    patience_s: float


def replace_pods(
    app: App,
    kubectl: Kubectl,
    workload: Workload,
    mode: Mode,
    *,
    members: Callable[[App], int],
    require_kept: Callable[[App], None],
) -> None:
    """Delete every pod of an old revision and wait for its successor, the leader's pod last.

    The group should have `members` again after each. A pod may take its share of the App's time; raises DeadlineError
    naming what is awaited, and what kubectl raises.
    """
    # before its controller has seen the change, updateRevision is the former one
    poll(
        app,
        f"the controller of {workload.text} to see the change",
        lambda look: observed(kubectl.get(look, workload.text)),
        hint=f"See its events: {kubectl.line('describe', workload.text)}; --settle-timeout gives more time.",
    )
    stateful_set = kubectl.get(app, workload.text)
    revision = str(section(stateful_set, "status")["updateRevision"])
    names = pod_names(stateful_set)
    work = _Work(app, kubectl, mode, revision, members, require_kept, app.deadline.timeout_s / max(1, len(names)))
    for name in _leader_last(app, kubectl, names):
        pod = kubectl.find(app, f"pod/{name}")
        if pod is None or pod_revision(pod) != revision or not pod_ready(pod):
            _replace(work, name, pod)


def _replace(work: _Work, name: str, pod: Manifest | None) -> None:
    """Delete the pod if it is of an old revision, and wait for its successor and the worker in it."""
    work.require_kept(for_a_look(work.app))
    before = frozenset[str]()
    if pod is not None and pod_revision(pod) != work.revision:
        before = _member_ids(_group(work.app))
        _tell(work, name, "restarting", "deleting it")
        work.kubectl.run(work.app, "delete", f"pod/{name}", "--wait=false")
    deadline = Deadline.after(work.patience_s, work.app.clock)
    spoken = ""
    for _ in deadline.rounds(_POLL_S):
        look = for_a_look(work.app)
        waiting = _missing(work, look, name, before)
        if not waiting:
            _tell(work, name, "done", f"replaced, Ready and in the group as {work.mode.value}")
            return
        work.require_kept(look)
        if waiting != spoken:
            spoken = waiting
            _tell(work, name, "settling", f"waiting: {waiting}")
    raise DeadlineError(
        f"pod {name}: not back after {deadline.timeout_s:g} s; still waiting: {waiting}",
        hint=f"See its log, and `{work.kubectl.line('describe', f'pod/{name}')}`; --settle-timeout gives more time.",
    )


def _leader_last(app: App, kubectl: Kubectl, names: Sequence[str]) -> list[str]:
    """Order the pods from the last one on, as the controller would, but put the leader's pod at the end."""
    host = urlsplit(_group(app).leader_url or "").hostname or ""

    def leads(name: str) -> bool:
        pod = kubectl.find(app, f"pod/{name}") or {}
        return bool(host) and (host.split(".")[0] == name or host == section(pod, "status").get("podIP"))

    from_last = list(reversed(names))
    return sorted(from_last, key=leads)


def _missing(work: _Work, look: App, name: str, before: frozenset[str]) -> str:
    """Describe what is still awaited; an error of a look is also something to wait for."""
    try:
        return _pod_missing(work, look, name) or _member_missing(_group(look), before, lambda: work.members(look))
    except EosctlError as exc:
        return exc.message


def _pod_missing(work: _Work, look: App, name: str) -> str:
    pod = work.kubectl.find(look, f"pod/{name}")
    if pod is None:
        return "the pod is not there yet"
    if pod_revision(pod) != work.revision:
        return f"the pod is made from {pod_revision(pod)}, not from {work.revision}"
    if pod_ready(pod):
        return ""
    return ": ".join(part for part in ("the pod is not Ready", pod_reason(pod)) if part)


def _member_missing(group: ConnectGroup, before: frozenset[str], members: Callable[[], int]) -> str:
    """Describe which member is missing; a killed worker stays a member until its session ends, so require a new one."""
    now = _member_ids(group)
    if group.state != STABLE:
        return f"the group is {group.state}"
    if before and not now - before:
        return "no new member has joined the group"
    wanted = members()
    return "" if len(now) >= wanted else f"{len(now)} of {wanted} members are in the group"


def _tell(work: _Work, name: str, state: str, words: str) -> None:
    subject = f"pod {name}"
    work.app.on_event(Event(f"{subject}: {words}", standings=(Standing(subject, work.mode.value, state),)))


def _group(app: App) -> ConnectGroup:
    group, _cluster_id = read_group(for_a_look(app), gone_ok=True)
    return group


def _member_ids(group: ConnectGroup) -> frozenset[str]:
    return frozenset(member.member_id for member in group.members)


_STUCK_S = 15.0


class StuckPod(Struct, frozen=True):
    """A pod that was not Ready when an upgrade was planned; `trouble` has the reason, in a sentence."""

    name: str
    workload: str
    trouble: str


def trouble(app: App, kubectl: Kubectl, pod: Pod) -> str:
    """Describe a pod: why it is not Ready, and what its container logged last."""
    lines = kubectl.last_lines(app, pod.name, pod.container) if pod.container else ()
    last = f"; container {pod.container} logged last: {' / '.join(lines)}" if lines else ""
    return f"pod {pod.name} is not Ready: {pod.reason}{last}"


class StuckPods:
    """The stuck pods of a StatefulSet during a rollout; those agreed on are deleted.

    `agreed` are uids; None if somebody else deletes pods.
    """

    def __init__(self, kubectl: Kubectl, agreed: Collection[str] | None) -> None:
        self._kubectl, self._deletes, self._agreed = kubectl, agreed is not None, frozenset(agreed or ())
        self._since_s: dict[str, float] = {}
        self._told: set[str] = set()

    def look(self, app: App, pods: Sequence[Pod], revision: str) -> None:
        """Delete agreed pods of a former revision that are not Ready for some time; warn of others, once."""
        now_s = app.clock.monotonic_s()
        stuck = {pod.uid: pod for pod in pods if not pod.ready and pod.revision != revision}
        for uid in self._since_s.keys() - stuck.keys():
            del self._since_s[uid]
        for uid, pod in stuck.items():
            if now_s - self._since_s.setdefault(uid, now_s) < _STUCK_S or uid in self._told:
                continue
            self._told.add(uid)
            end = "its controller does not replace such a pod"
            words = f"pod {pod.name}: it is of the former revision and not Ready ({pod.reason}), and {end}"
            if uid in self._agreed:
                app.on_event(Event(f"{words}: deleting it", warning=True))
                self._kubectl.run(app, "delete", f"pod/{pod.name}", "--wait=false")
            else:
                app.on_event(Event(f"{words}; {self._way_out(pod)}", warning=True))

    def _way_out(self, pod: Pod) -> str:
        if self._deletes:
            return "--resume asks whether to delete it"
        return f"delete it: {self._kubectl.line('delete', f'pod/{pod.name}')}"

    def timed_out(self, app: App, workload: str, pods: Sequence[Pod], *, timeout_s: float) -> DeadlineError:
        """Make the error for a rollout that does not end: each pod that is not Ready, and how to go on."""
        there = [trouble(app, self._kubectl, pod) for pod in pods if not pod.ready]
        unready = "; ".join(there) or "every pod that is there is Ready"
        left = [pod for pod in pods if pod.uid in self._told - self._agreed]
        asks = "".join(f"Pod {pod.name}: {self._way_out(pod)}. " for pod in left)
        return DeadlineError(
            f"{workload}: not rolled out after {timeout_s:g} s; {unready}",
            hint=f"{asks}See its events: {self._kubectl.line('describe', workload)}; --settle-timeout gives more time.",
        )


# annotation -> whose operator then leaves the resource alone
_PAUSES = {"strimzi.io/pause-reconciliation": "Strimzi's", "platform.confluent.io/block-reconcile": "Confluent's"}


def refuse_owned(workload: str, now: Manifest) -> None:
    """Raise RefusedError if an operator made the workload and would revert changes, as Confluent's does."""
    for owner in section(now, "metadata").get("ownerReferences") or ():
        if owner.get("controller"):
            kind, version = str(owner.get("kind")), str(owner.get("apiVersion"))
            whose = f"{kind}/{owner.get('name')} ({version})"
            way = "--driver print waits for each worker, and checks it."
            if version.startswith("platform.confluent.io/") and kind == "Connect":
                way = f"--workload connect/{shell_word(str(owner.get('name')))} does so."
            raise RefusedError(
                f"{workload} is made by {whose}, whose operator reverts changes there; nothing was written",
                hint=f"Set {SETTING} in that resource. {way}",
            )


def not_rolling(workload: str, now: Manifest) -> tuple[str, list[str]]:
    """Return why a change would not reach all pods, and the kubectl arguments that fix it; empty if it would."""
    partition = section(now, "spec", "updateStrategy", "rollingUpdate").get("partition") or 0
    if partition and not deletes_by_hand(now):
        patch = json.dumps({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
        reason = f"has updateStrategy.rollingUpdate.partition {partition}: pods below that ordinal keep the old mode"
        return reason, ["patch", workload, "--type", "merge", "--patch", patch]
    if section(now, "spec").get("paused"):
        return "is paused: its pods would not be restarted", ["rollout", "resume", workload]
    for annotation, whose in _PAUSES.items():
        if section(now, "metadata", "annotations").get(annotation) == "true":
            words = ["annotate", workload, f"{annotation}-"]
            return f"is paused: {whose} operator would not restart its pods", words
    return "", []
