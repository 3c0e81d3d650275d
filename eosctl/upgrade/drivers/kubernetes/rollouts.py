"""Waits for controllers that restart pods, and watches the field with a workload's mode.

Each pod is reported meanwhile: its state, and why it is not Ready. `kubectl rollout status` is no help: it reports
nothing of pods, and goes on for ever where it may not look.

The field is watched until somebody else has set it, and for whether it stays so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Deadline, Event, Standing
from eosctl.errors import ConnectError, DeadlineError
from eosctl.upgrade.drivers import TakenBackError
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl, PatientLooks, poll, section
from eosctl.upgrade.drivers.kubernetes.mode_places import FoundMode, ModePlace
from eosctl.upgrade.drivers.kubernetes.pods import StuckPods
from eosctl.upgrade.drivers.kubernetes.workloads import (
    STATEFUL_SET,
    Workload,
    generation,
    list_pods,
    not_ready_condition,
    observed,
    rolled_out,
)
from eosctl.upgrade.drivers.manifests.fields import Manifest, newest_writer, writers_of
from eosctl.upgrade.drivers.manifests.pods import Pod, writer_words

_STRIMZI_RESTART = "strimzi.io/manual-rolling-update"
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
        with looks as look:
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

    def done(look: App) -> bool:
        now = kubectl.get(look, workload.text)
        require_kept(look, now)
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
        lambda look: generation(kubectl.get(look, made.text)) > before,
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

    def restarted(look: App) -> bool:
        return _STRIMZI_RESTART not in section(kubectl.get(look, pod_set), "metadata", "annotations")

    poll(
        app,
        f"Strimzi's operator to restart the pods of {pod_set}",
        restarted,
        hint=_TELLS.format(kubectl.line("describe", pod_set)),
    )


MANAGED = "--show-managed-fields"
_POLL_S = 1.0


def await_change(app: App, kubectl: Kubectl, workload: Workload, place: ModePlace, mode: Mode) -> None:
    """Wait until the field has the mode, whoever sets it.

    Raises DeadlineError, and ConnectError if it gets a value that is neither the mode nor its first one.
    """
    first: FoundMode | None = None
    spoken = ""
    deadline = Deadline.after(app.deadline.remaining_s(), app.clock)
    looks = PatientLooks(app, deadline)
    while True:
        found = None
        with looks as look:
            found = place.find(look, kubectl, workload, kubectl.get(look, workload.text, MANAGED), MANAGED)
        if found is None:
            app.clock.sleep_s(_POLL_S)
            continue
        if found.value == mode.value:
            return
        first = first or found
        if found.value != first.value:
            words = f"{_state(found)}, while this pass waits for {mode.value}{_by(found)}"
            if first.value == Mode.PREPARING.value:  # disabled workers would be restarted as enabled ones
                raise TakenBackError(words, again=Mode.PREPARING)
            raise ConnectError(
                words,
                hint=f"Set it to {mode.value} where it is deployed from; --resume then continues.",
            )
        waiting = f"{_state(found)}; waiting until somebody sets it to {mode.value}"
        if deadline.expired():
            raise DeadlineError(
                f"nobody changed it within {app.deadline.timeout_s:g} s: {waiting}",
                hint="Set it where it is deployed from, and --resume continues; --settle-timeout waits longer.",
            )
        if waiting != spoken:
            spoken = waiting
            standing = Standing(workload.text, mode.value, "to come")
            app.on_event(Event(waiting, standings=(standing,)))
        app.clock.sleep_s(_POLL_S)


def await_newer_pods(app: App, kubectl: Kubectl, workload: Workload, place: ModePlace) -> None:
    """Wait until every pod was made after the field got its value: changing a file restarts nothing.

    By the times of the API server, which have no parts of a second. Raises DeadlineError.
    """
    deadline = Deadline.after(app.deadline.remaining_s(), app.clock)
    looks = PatientLooks(app, deadline)
    older: list[str] = []
    while True:
        with looks as look:
            now = kubectl.get(look, workload.text, MANAGED)
            found = place.find(look, kubectl, workload, now, MANAGED)
            older = _older_pods(look, kubectl, workload, now, found)
            if not older:
                return
        if older and deadline.expired():
            raise DeadlineError(
                f"timed out after {app.deadline.timeout_s:g} s while waiting for somebody to restart "
                f"{', '.join(older)}, which was made before {found.words} of {found.thing} was changed",
                hint=f"{kubectl.line('rollout', 'restart', workload.text)}, or what the tool that deploys it does; "
                "--resume then continues.",
            )
        app.clock.sleep_s(_POLL_S)


def _older_pods(app: App, kubectl: Kubectl, workload: Workload, now: Manifest, found: FoundMode) -> list[str]:
    """Return the pods made before the field got its value; none if the time of that is unknown."""
    writers = writers_of(found.manifest, found.path)
    pods = list_pods(app, kubectl, workload, now) if writers else ()
    return [f"pod {pod.name}" for pod in pods if pod.created < writers[-1].time]


def made_after_file(app: App, kubectl: Kubectl, workload: Workload, place: ModePlace, now: Manifest) -> str | None:
    """Return the mode of a file if every pod was made after it was written; None if that is unknown."""
    found = place.find(app, kubectl, workload, now, MANAGED)
    told = writers_of(found.manifest, found.path) and not _older_pods(app, kubectl, workload, now, found)
    return found.value if told else None


def taken_back(
    app: App, kubectl: Kubectl, workload: Workload, place: ModePlace, allowed: Collection[Mode]
) -> str | None:
    """Describe how the field differs from what was set, and who wrote it; None if it does not."""
    found = place.find(app, kubectl, workload, kubectl.get(app, workload.text, MANAGED), MANAGED)
    if found.value in {mode.value for mode in allowed}:
        return None
    return f"{_state(found)}, no longer {' or '.join(mode.value for mode in allowed)}{_by(found)}"


def _state(found: FoundMode) -> str:
    return f"{found.thing}: {found.words} is {found.value or 'not set'}"


def _by(found: FoundMode) -> str:
    """Return who wrote the field last; for a deleted field, who wrote the object last."""
    writers = writers_of(found.manifest, found.path)
    writer = writers[-1] if writers and found.value is not None else newest_writer(found.manifest)
    return f"; {writer_words(writer)} wrote it at {writer.time}" if writer else ""
