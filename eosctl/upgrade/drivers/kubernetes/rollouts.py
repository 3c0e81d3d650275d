"""Waits for controllers that restart pods, and reports each pod meanwhile: its state, and why it is not Ready.

`kubectl rollout status` is no help: it says nothing of pods, and goes on for ever where it may not look.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Deadline
from eosctl.errors import ConnectError
from eosctl.events import Event, Standing
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl, poll, section
from eosctl.upgrade.drivers.kubernetes.patient_looks import PatientLooks
from eosctl.upgrade.drivers.kubernetes.stuck_pods import StuckPods
from eosctl.upgrade.drivers.kubernetes.workloads import (
    STATEFUL_SET,
    Workload,
    generation,
    list_pods,
    not_ready_condition,
    observed,
    rolled_out,
)
from eosctl.upgrade.drivers.manifests.fields import Manifest
from eosctl.upgrade.drivers.manifests.pods import Pod

_STRIMZI_RESTART = "strimzi.io/manual-rolling-update"
_LOOK_S = 30.0
_TELLS = "See its events: {}; --settle-timeout gives more time."


Kept = Callable[[App, Manifest], None]
"""Raises an error where the workload, as it is now, no longer says the mode."""


def await_rollout(
    app: App,
    kubectl: Kubectl,
    workload: Workload,
    mode: Mode,
    require_kept: Kept,
    *,
    agreed: Collection[str] | None = (),
) -> None:
    """Wait until all pods are made from the newest spec and Ready; raise DeadlineError, which names those that are not.

    `agreed` are uids of pods that may be deleted where they are stuck; None where eosctl deletes nothing.
    """
    told: dict[str, str] = {}
    stuck = StuckPods(kubectl, agreed)
    deadline = Deadline.after(app.deadline.remaining_s(), app.clock)
    looks = PatientLooks(app, deadline)
    pods: Sequence[Pod] = ()
    for _ in deadline.rounds(1.0):
        answered = False
        # a look has time of its own: what is said when the time is up should be which pod is not Ready
        look = replace(app, deadline=Deadline.after(_LOOK_S, app.clock))
        with looks:
            now = kubectl.get(look, workload.text)
            require_kept(look, now)
            if rolled_out(now):
                return
            pods = list_pods(look, kubectl, workload, now)
            answered = True
        _tell(app, pods, mode, told)
        if answered and workload.kind == STATEFUL_SET and observed(now):
            stuck.look(look, pods, str(section(now, "status").get("updateRevision")))
    raise stuck.timed_out(look, workload.text, pods, timeout_s=app.deadline.timeout_s)


def _tell(app: App, pods: Sequence[Pod], mode: Mode, told: dict[str, str]) -> None:
    """Report each pod whose state has changed."""
    for pod in pods:
        state = "Ready" if pod.ready else f"not Ready: {pod.reason}"
        words = f"pod {pod.name}: {state}, revision {pod.revision}"
        if told.get(pod.name) != words:
            told[pod.name] = words
            standing = Standing(f"pod {pod.name}", mode.value, "done" if pod.ready else "settling")
            app.on_event(Event(words, standings=(standing,)))


def await_strimzi(app: App, kubectl: Kubectl, workload: Workload, require_kept: Kept) -> None:
    """Wait until Strimzi's operator has made a change, with restarts; raise ConnectError for one it refuses."""

    def done() -> bool:
        now = kubectl.get(app, workload.text)
        require_kept(app, now)
        return _operator_done(now, workload)

    poll(
        app,
        f"Strimzi's operator to be through with {workload.text}",
        done,
        hint=_TELLS.format(kubectl.line("describe", workload.text)),
    )


def await_operator(app: App, kubectl: Kubectl, workload: Workload, made: Workload, before: int) -> None:
    """Wait until an operator has changed what it makes of a workload; `before` was the generation of that."""
    poll(
        app,
        f"the operator of {workload.text} to change {made.text}",
        lambda: generation(kubectl.get(app, made.text)) > before,
        hint=_TELLS.format(kubectl.line("describe", workload.text)),
    )


def _operator_done(now: Manifest, workload: Workload) -> bool:
    """Decide whether the operator has handled the newest spec; raise ConnectError if its condition is NotReady."""
    if not observed(now):
        return False
    condition = not_ready_condition(now)
    if condition is not None:
        raise ConnectError(
            f"{workload.text} is NotReady: {condition.get('reason')}: {condition.get('message')}",
            hint="Fix what Strimzi's operator complains of; --resume then continues.",
        )
    return True


def restart_pod_set(app: App, kubectl: Kubectl, pod_set: str) -> None:
    """Ask Strimzi's operator for a restart; it removes the annotation when all pods are restarted."""
    kubectl.run(app, "annotate", "--overwrite", pod_set, f"{_STRIMZI_RESTART}=true")

    def restarted() -> bool:
        return _STRIMZI_RESTART not in section(kubectl.get(app, pod_set), "metadata", "annotations")

    poll(
        app,
        f"Strimzi's operator to restart the pods of {pod_set}",
        restarted,
        hint=_TELLS.format(kubectl.line("describe", pod_set)),
    )
