"""Replaces the pods of a StatefulSet with `updateStrategy: OnDelete` one after the other, as no controller does.

A pod is deleted only when the one before is Ready and a stable member of the Connect group again. Pods of the newest
revision are left alone, so that a run can be resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Deadline
from eosctl.errors import DeadlineError, EosctlError
from eosctl.events import Event, Standing
from eosctl.group.gather import read_group
from eosctl.group.members import STABLE, ConnectGroup
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl, poll, section
from eosctl.upgrade.drivers.kubernetes.workloads import (
    Workload,
    observed,
    pod_names,
    pod_ready,
    pod_reason,
    pod_revision,
)
from eosctl.upgrade.drivers.manifests.fields import Manifest

_POLL_S = 1.0
_LOOK_S = 30.0


class _Work(Struct, frozen=True):
    """The facts common to every pod: `revision` is that of new ones, `members` counts the workers that should be there.

    `members` is asked each time, as a workload may be scaled meanwhile. `require_kept` raises an error once somebody
    has reverted the change: a pod made then would have the former mode.
    """

    app: App
    kubectl: Kubectl
    mode: Mode
    revision: str
    members: Callable[[], int]
    require_kept: Callable[[], None]
    patience_s: float


def replace_pods(
    app: App,
    kubectl: Kubectl,
    workload: Workload,
    mode: Mode,
    *,
    members: Callable[[], int],
    require_kept: Callable[[], None],
) -> None:
    """Delete every pod of an old revision and wait for its successor, the leader's pod last.

    The group should have `members` again after each. A pod may take its share of the App's time; raises DeadlineError
    naming what is awaited, and what kubectl raises.
    """
    # before its controller has seen the change, updateRevision is the former one
    poll(
        app,
        f"the controller of {workload.text} to see the change",
        lambda: observed(kubectl.get(app, workload.text)),
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
    work.require_kept()
    before = frozenset[str]()
    if pod is not None and pod_revision(pod) != work.revision:
        before = _member_ids(_group(work.app))
        _tell(work, name, "restarting", "deleting it")
        work.kubectl.run(work.app, "delete", f"pod/{name}", "--wait=false")
    deadline = Deadline.after(work.patience_s, work.app.clock)
    spoken = ""
    for _ in deadline.rounds(_POLL_S):
        waiting = _missing(work, name, before)
        if not waiting:
            _tell(work, name, "done", f"replaced, Ready and in the group as {work.mode.value}")
            return
        work.require_kept()
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


def _missing(work: _Work, name: str, before: frozenset[str]) -> str:
    """Describe what is still awaited; an error of a look is also something to wait for."""
    try:
        return _pod_missing(work, name) or _member_missing(_group(work.app), before, work.members)
    except EosctlError as exc:
        return exc.message


def _pod_missing(work: _Work, name: str) -> str:
    pod = work.kubectl.find(work.app, f"pod/{name}")
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
    group, _cluster_id = read_group(replace(app, deadline=Deadline.after(_LOOK_S, app.clock)), gone_ok=True)
    return group


def _member_ids(group: ConnectGroup) -> frozenset[str]:
    return frozenset(member.member_id for member in group.members)
