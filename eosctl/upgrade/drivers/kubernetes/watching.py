"""Watches the field with a workload's mode: until somebody else has set it, and whether it stays so."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Deadline
from eosctl.errors import ConnectError, DeadlineError
from eosctl.events import Event, Standing
from eosctl.upgrade.drivers import TakenBackError
from eosctl.upgrade.drivers.kubernetes.kubectl import Kubectl
from eosctl.upgrade.drivers.kubernetes.mode_places import FoundMode, ModePlace
from eosctl.upgrade.drivers.kubernetes.patient_looks import PatientLooks
from eosctl.upgrade.drivers.kubernetes.workloads import Workload, list_pods
from eosctl.upgrade.drivers.manifests.deployers import writer_words
from eosctl.upgrade.drivers.manifests.fields import Manifest, newest_writer, writers_of

MANAGED = "--show-managed-fields"
_LOOK_S = 30.0
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
        look = replace(app, deadline=Deadline.after(_LOOK_S, app.clock))
        found = None
        with looks:
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
        look = replace(app, deadline=Deadline.after(_LOOK_S, app.clock))
        with looks:
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
