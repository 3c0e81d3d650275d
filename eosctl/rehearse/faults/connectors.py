"""Faults by administrators: restarts, other settings, another offsets topic, an upgrade."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from typing import ClassVar

from eosctl.app import App
from eosctl.connectors.change import prepare_change
from eosctl.connectors.dedicated import TOPIC_PROPERTY
from eosctl.connectors.rows import Verb
from eosctl.core.offsets.names import GLOBAL
from eosctl.core.versions import STOPPABLE_SINCE
from eosctl.core.wording import counted
from eosctl.core.workers.modes import Mode
from eosctl.errors import EosctlError, ExitCode
from eosctl.observation.gather import SUPPORT_PROPERTY
from eosctl.offsets.switch.apply import prepare_switch
from eosctl.offsets.switch.plan import SwitchRequest
from eosctl.plan import Plan
from eosctl.rehearse.faults.fault import RestartsTasks, Setup
from eosctl.rehearse.ground import Ground
from eosctl.rehearse.rules import requires_exactly_once
from eosctl.upgrade.drivers.sandboxes import SandboxDriver
from eosctl.upgrade.roll.prepare import RollRequest, prepare_roll
from eosctl.upgrade.roll.roll import prepare_upgrade

SWITCHED_TO = "rehearsed-offsets"
_MORE_TASKS = 2
_MOST_LOOKS = 20
_SETTLE_S = 300.0


class RestartTasks(RestartsTasks):
    """A fault that restarts the connector and its tasks by REST."""

    name: ClassVar[str] = "restart-tasks"
    what: ClassVar[str] = "restart the connector and its tasks"

    def inject(self, ground: Ground) -> None:
        """Restart the tasks, as `eosctl connectors restart` does."""
        _carry_out(ground, lambda app: prepare_change(app, ground.connector, Verb.RESTART))
        ground.note("restarted the connector and its tasks")


class StopResume(RestartsTasks):
    """A fault that stops the connector and resumes it with new tasks."""

    name: ClassVar[str] = "stop-resume"
    what: ClassVar[str] = "stop the connector and resume it"

    @staticmethod
    def why_not(setup: Setup) -> str:
        """Require Kafka 3.5, as STOPPED came with KIP-875."""
        return "" if setup.kafka_version >= STOPPABLE_SINCE else "needs Kafka 3.5"

    def inject(self, ground: Ground) -> None:
        """Stop the connector and wait until no worker has a task."""
        _carry_out(ground, lambda app: prepare_change(app, ground.connector, Verb.STOP))
        ground.note("stopped the connector")

    def undo(self, ground: Ground) -> None:
        """Resume the connector."""
        _carry_out(ground, lambda app: prepare_change(app, ground.connector, Verb.RESUME))
        ground.note("resumed it")


class Reconfigure(RestartsTasks):
    """A fault that gives the connector more tasks, then only one."""

    name: ClassVar[str] = "reconfigure"
    what: ClassVar[str] = "change the connector's tasks.max: more, then fewer, then as before"

    @staticmethod
    def why_not(setup: Setup) -> str:
        """Require more than one possible task, and a known number of them."""
        if setup.has_one_task:
            return "needs a connector that makes more than one task"
        return "" if setup.knows_tasks else "needs a number as tasks.max"

    def inject(self, ground: Ground) -> None:
        """Change tasks.max to more and to one, and wait for each change."""
        tasks = int(ground.config.get("tasks.max", "1"))
        counts = [_task_count(ground)]
        for wanted in (tasks + _MORE_TASKS, 1):
            _change_config(ground, {"tasks.max": str(wanted)})
            # what REST shows at once is the former state; a connector may also go on with as many as it had
            ready = partial(_has_changed, ground, counts[-1], count())
            ground.await_well(within_s=ground.app.deadline.timeout_s, ready=ready)
            counts.append(_task_count(ground))
            ground.note(f"tasks.max {wanted}: {counted(counts[-1], 'task')} ran")
        if len(set(counts)) == 1:
            ground.miss(f"the connector has {counted(counts[0], 'task')} whatever tasks.max is")

    def undo(self, ground: Ground) -> None:
        """Restore tasks.max."""
        _change_config(ground, {"tasks.max": ground.config.get("tasks.max", "1")})


class SwitchOffsets(RestartsTasks):
    """A fault that moves the connector's offsets to another topic, and back."""

    name: ClassVar[str] = "switch-offsets"
    what: ClassVar[str] = "move the connector's offsets to another topic (`eosctl offsets switch`), and back"

    @staticmethod
    def why_not(setup: Setup) -> str:
        """Require Kafka 3.5, as the connector has to be STOPPED meanwhile."""
        return "" if setup.kafka_version >= STOPPABLE_SINCE else "needs Kafka 3.5"

    def inject(self, ground: Ground) -> None:
        """Switch to an offsets topic that only rehearsals use."""
        ground.offsets_topics.append(SWITCHED_TO)
        self._switch(ground, SWITCHED_TO)

    def undo(self, ground: Ground) -> None:
        """Switch back to the former topic."""
        self._switch(ground, ground.config.get(TOPIC_PROPERTY) or GLOBAL)

    @staticmethod
    def _switch(ground: Ground, to: str) -> None:
        _carry_out(ground, lambda app: prepare_switch(app, SwitchRequest(ground.connector, to)))
        ground.note(f"moved the offsets to {'the global topic' if to == GLOBAL else to}")


class Upgrade(RestartsTasks):
    """The first step of a rehearsal: the upgrade of the group to enabled."""

    name: ClassVar[str] = "upgrade"
    what: ClassVar[str] = "upgrade the workers from disabled to enabled (`eosctl upgrade apply`)"
    leaves_mode: ClassVar[bool] = True

    def inject(self, ground: Ground) -> None:
        """Bring the workers to enabled: now tasks write in transactions, and the connector may require that."""
        roll_to(ground, Mode.ENABLED)
        if requires_exactly_once(ground.config):
            _change_config(ground, {SUPPORT_PROPERTY: "required"})
            ground.note(f"set {SUPPORT_PROPERTY}=required")


class RollWorkers(RestartsTasks):
    """A fault that rolls the group down to preparing, and up to enabled again."""

    name: ClassVar[str] = "roll"
    what: ClassVar[str] = "roll the workers to preparing and back to enabled (`eosctl upgrade apply`)"
    leaves_mode: ClassVar[bool] = True

    def inject(self, ground: Ground) -> None:
        """Bring the workers to preparing: from here on tasks write without transactions."""
        roll_to(ground, Mode.PREPARING)

    def undo(self, ground: Ground) -> None:
        """Bring the workers to enabled."""
        roll_to(ground, Mode.ENABLED)


def roll_to(ground: Ground, mode: Mode) -> None:
    """Bring all workers to a mode as `eosctl upgrade apply --driver sandbox` does; raise EosctlError."""

    def prepare(app: App) -> Plan:
        request = RollRequest(target=mode, settle_timeout_s=max(_SETTLE_S, app.deadline.timeout_s))
        roll = prepare_roll(app, request, SandboxDriver(ground.directory))
        if roll.blocking:
            gate = roll.blocking[0]
            raise EosctlError(f"the upgrade to {mode.value} stops at gate {gate.id}: {gate.evidence}", hint=gate.fix)
        return prepare_upgrade(app, roll, watching=False)

    _carry_out(ground, prepare)
    ground.note(f"rolled the workers to {mode.value}")


def _task_count(ground: Ground) -> int:
    status = ground.status()
    return len(status.tasks) if status else 0


def _has_changed(ground: Ground, tasks: int, looks: Iterator[int]) -> bool:
    return _task_count(ground) != tasks or next(looks) >= _MOST_LOOKS


def _change_config(ground: Ground, changed: Mapping[str, str]) -> None:
    app = ground.app_now()
    worker = app.worker(app.target.connect_urls[0])
    config = worker.connector_config(ground.connector)
    worker.put_connector_config(ground.connector, {**config, **changed})


def _carry_out(ground: Ground, prepare: Callable[[App], Plan]) -> None:
    """Plan and apply, as the command would after a yes; raise EosctlError if it did not complete."""
    plan = prepare(ground.app_now())
    plan.report()
    if plan.apply is None:
        ground.miss("eosctl found nothing to change")
        return
    report = plan.apply()
    if report.exit_code is not ExitCode.OK:
        told = [each for each in report.problems if each.severity == "error"]
        raise EosctlError(told[0].message if told else f"{report.kind} ended with {report.exit_code.name}")
