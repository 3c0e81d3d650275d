"""The state of a Connect group in a sentence, the proofs for its FAILED parts, and its connectors without tasks.

The sentence counts enabled workers, and source tasks that are not exactly-once.

The group and its config topic have evidence about FAILED parts beyond the words of their traces. A trace has one text
for several causes, and the repair of one harms another. Weighing that evidence is pure.

Connectors without tasks are source connectors that are RUNNING and have no task for longer than it takes to make them.
Reads only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.checks import codes
from eosctl.checks.visit import StatusLog
from eosctl.connectors import codes as connector_codes
from eosctl.core.configs.records import pruned_class
from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.core.ids import WorkerId, worker_id_of_url
from eosctl.core.wording import counted
from eosctl.core.workers.connector_entry import TaskStatus
from eosctl.core.workers.modes import POSSIBLE, Mode
from eosctl.failures import codes as failures_codes
from eosctl.failures.failure import RESTART
from eosctl.foreign import arguments, shell_word
from eosctl.group.members import STABLE
from eosctl.group.observation.rules import Observation, ObservedConnector
from eosctl.observation.connectors.exactly_once import task_verdicts
from eosctl.rescue.rules import RescueVerdict, diagnose, stopped_instead

_MOST_NAMED = 3


class GroupState(Struct, frozen=True):
    """`modes` has the number of workers in each mode; counts of tasks are None where they are not known.

    Which tasks are not exactly-once is what `task_verdict` says.
    """

    workers: int
    modes: Mapping[Mode, int] = {}
    source_tasks: int | None = None
    not_exactly_once: int | None = None
    failed_tasks: int | None = None

    def sentence(self) -> str:
        """Describe it: `2 of 3 workers enabled (1 disabled); 12 source tasks (1 FAILED), 4 of them not exactly-once`.

        A FAILED task delivers nothing: of it alone nothing is called exactly-once.
        """
        others = ", ".join(f"{count} {mode.value}" for mode, count in self.modes.items() if mode is not Mode.ENABLED)
        workers = f"{self.modes.get(Mode.ENABLED, 0)} of {counted(self.workers, 'worker')} enabled"
        workers += f" ({others})" if others else ""
        if self.source_tasks is None:
            return f"{workers}; source tasks are not known"
        tasks = counted(self.source_tasks, "source task")
        if not self.source_tasks:
            return f"{workers}; no source tasks"
        tasks += f" ({self.failed_tasks} FAILED)" if self.failed_tasks else ""
        if self.failed_tasks == self.source_tasks:
            return f"{workers}; {tasks}"
        if self.not_exactly_once is None:
            return f"{workers}; {tasks}, and whether they are exactly-once is not known"
        if not self.not_exactly_once:
            return f"{workers}; {tasks}, exactly-once"
        return f"{workers}; {tasks}, {self.not_exactly_once} of them not exactly-once"


def group_state(observation: Observation) -> GroupState:
    """Count workers by mode, and tasks by verdict; workers that only files name are no members of the group."""
    members = [worker for worker in observation.workers if worker.mode is not Mode.ABSENT]
    modes = Counter(worker.mode for worker in members)
    state = GroupState(len(members), {mode: modes[mode] for mode in Mode if modes[mode]})
    if observation.connectors is None:
        return state
    states = [task for each in observation.sources() for task in each.tasks().values()]
    verdicts = [
        verdict.exactly_once for each in observation.sources() for verdict in task_verdicts(each, observation).values()
    ]
    unknown = None in verdicts
    return GroupState(
        state.workers, state.modes, len(states), None if unknown else verdicts.count(False), states.count("FAILED")
    )


def expectation_findings(observation: Observation, expected: Mode | None) -> Iterable[Finding]:
    """Yield errors where the group is not in the mode `expected`, else where its records show that it was enabled."""
    group = observation.group_id or "group"
    if expected is None:
        yield from _was_enabled(observation, group)
        return
    members = [worker for worker in observation.workers if worker.mode is not Mode.ABSENT]
    fix = f"`eosctl upgrade plan --to {shell_word(expected)}` has the way there."
    for worker in members:
        if expected not in POSSIBLE[worker.mode]:
            yield Finding(
                codes.MODE_NOT_EXPECTED, ERROR, worker.name,
                f"{worker.name} is {worker.mode}, and {expected} is expected",
                fix, {"mode": worker.mode.value, "expected": expected.value},
            )  # fmt: skip
        elif POSSIBLE[worker.mode] != {expected}:
            yield Finding(
                codes.MODE_NOT_PROVEN, WARNING, worker.name,
                f"{worker.name} is {worker.mode}, and whether that is {expected}, as expected, is not known",
                "Give the worker's file (-w), which has it.", {"mode": worker.mode.value, "expected": expected.value},
                certain=False,
            )  # fmt: skip


def _was_enabled(observation: Observation, group: str) -> Iterable[Finding]:
    """Yield an error if no worker is enabled, and task-count records (KIP-618) show that the leader was."""
    state = observation.config_state
    possible = [POSSIBLE[worker.mode] for worker in observation.workers if worker.mode is not Mode.ABSENT]
    if state is None or not possible or any(Mode.ENABLED in each for each in possible):
        return
    sources = {each.name for each in observation.sources()}
    names = sorted(
        name for name in sources & state.connectors.keys() if state.connectors[name].task_count_record is not None
    )
    if names:
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        yield Finding(
            codes.ENABLED_BEFORE, ERROR, group,
            f"no worker is enabled, and task-count records of {', '.join(names[:_MOST_NAMED])}{more} say that some "
            "were: tasks write without transactions now",
            "`eosctl upgrade plan --to enabled` has the way back there. Where it is meant to be so, say so: `--expect "
            "disabled` or `--expect preparing`, or expect.mode of the profile.", {"connectors": names},
        )  # fmt: skip


_RESCUED = (failures_codes.FENCING_FORWARD_TIMEOUT, failures_codes.FENCING_TIMED_OUT, failures_codes.FENCING_FAILED)
_ACCEPTED = (RescueVerdict.FENCE, RescueVerdict.RESTART)


def with_proofs(findings: Sequence[Finding], seen: Observation) -> list[Finding]:
    """Return the findings; those with several causes or remedies with the one that was seen to be right."""
    return [_of_rescue(_of_ghost(each, seen), seen) for each in findings]


def _name(finding: Finding) -> str:
    """Return the connector of a finding about it, or about one of its tasks."""
    return finding.subject.rpartition("/")[0] or finding.subject


def _of_ghost(finding: Finding, seen: Observation) -> Finding:
    """Name a connector that only an aborted record of the config topic has: nothing else is ended by a DELETE."""
    if finding.code != failures_codes.CONNECTOR_TYPE_UNKNOWN or seen.config_state is None:
        return finding
    name = _name(finding)
    committed = seen.config_state.connectors.get(name)
    if (committed is not None and committed.config is not None) or name not in (seen.differing_connectors or ()):
        return finding
    return replace(
        finding, code=connector_codes.CONNECTOR_IS_A_GHOST,
        message=f"{finding.subject} is FAILED: {seen.config_topic} has no committed config of {name}, only an aborted "
        "one, which workers that are not enabled read",
        fix=f"`eosctl task-counts replay --topic` shows the record. Then create a connector {shell_word(name)} with "
        "initial_state STOPPED, and DELETE it, which leaves tombstones.",
    )  # fmt: skip


def _of_rescue(finding: Finding, seen: Observation) -> Finding:
    """Print `rescue` only where it does not refuse; where a fencing round is due, a stop takes its place."""
    name = _name(finding)
    state = seen.config_state.connectors.get(name) if seen.config_state is not None else None
    connector = next((each for each in seen.connectors or () if each.name == name), None)
    if finding.code not in _RESCUED or "eosctl rescue" not in finding.fix or state is None or connector is None:
        return finding
    if diagnose(state, _tasks(connector)).verdict in _ACCEPTED:
        return finding
    if not state.pending_fencing or state.target_state != "STARTED":
        return replace(
            finding, fix=f"See what its other tasks died of; then {RESTART.replace('{name}', arguments(name))}."
        )
    return replace(
        finding,
        fix="A fencing round may still go on, and tasks that wait for it are called RUNNING: look again when all have "
        f"failed, and rescue heals it. Or now: {stopped_instead(name)}.",
    )  # fmt: skip


def _tasks(connector: ObservedConnector) -> list[TaskStatus]:
    return [
        TaskStatus(
            number, state, WorkerId(connector.workers.get(part, "")), connector.traces.get(part, "")
        )
        for number, state in sorted(connector.tasks().items())
        if (part := f"task {number}")
    ]  # fmt: skip


MOMENT_MS, LONG_MS = 60_000, 300_000
"""A rebalance and a round of fencing take less than the one, but for large groups; the other is no moment anywhere."""


def find_without_tasks(app: App, seen: Observation, log: StatusLog) -> list[Finding]:
    """Return a finding for each; none where the status topic, which alone has the time of its start, has nothing."""
    if seen.group_state != STABLE:
        return []
    now_ms = app.clock.now_ms()
    idle = [(each, log.newest(each.name, "connector")) for each in seen.sources() if _has_no_tasks(each)]
    ages = [(each, now_ms - status.at_ms) for each, status in idle if status is not None and status.state == "RUNNING"]
    return [finding for each, age_ms in ages if age_ms >= MOMENT_MS for finding in _judge(each, age_ms, seen)]


def _has_no_tasks(connector: ObservedConnector) -> bool:
    """Return whether it should have tasks and has none: MirrorMaker's have none as long as there is nothing to copy."""
    is_mirror = pruned_class(connector.config).startswith("Mirror")
    return connector.states.get("connector") == "RUNNING" and not connector.tasks() and not is_mirror


def _judge(connector: ObservedConnector, age_ms: int, seen: Observation) -> Iterable[Finding]:
    name, worker = connector.name, connector.workers.get("connector", "")
    recorded = seen.config_state.connectors.get(name) if seen.config_state is not None else None
    count = len(recorded.task_ids) if recorded is not None else 0
    leader = next((each.name for each in seen.workers if each.leader), None)
    said = f"{name} has been RUNNING on {worker or 'a worker'} without a task for {age_ms // 60_000:,} m"
    restart = f"`eosctl connectors restart {arguments(name)}`"
    evidence = {"worker": worker, "leader": leader, "running_ms": age_ms, "tasks_written": count}
    if count:
        set_age_ms = seen.task_set_age_ms(name)
        if set_age_ms is not None and set_age_ms >= MOMENT_MS:
            yield Finding(
                codes.SOURCE_WITHOUT_TASKS, ERROR if min(age_ms, set_age_ms) >= LONG_MS else WARNING, name,
                f"{said}: the config topic has {counted(count, 'task')} of it, and no worker says anything of them",
                f"See the logs of the workers, the leader's first: what keeps the tasks from being started. {restart} "
                "once that is mended.",
                evidence,
            )  # fmt: skip
    elif leader is not None and worker == worker_id_of_url(leader):
        yield Finding(
            codes.SOURCE_WITHOUT_TASKS, INFO, name, f"{said}: it gave its worker no task configs",
            "Nothing, if there is nothing for it to read; its worker's log may say why.", evidence,
        )  # fmt: skip
    else:
        yield Finding(
            codes.SOURCE_WITHOUT_TASKS, WARNING, name,
            f"{said}: it found nothing to read, or its worker could not hand its task configs to the leader",
            f"See the log of {worker or 'its worker'}: whether it reaches the leader ({leader or 'not known'}) over "
            f"REST. {restart} once it does.",
            evidence,
        )  # fmt: skip
