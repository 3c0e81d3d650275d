"""`task-counts write`: plan, fence the recorded ids, keep a backup, write the record, read it back.

The most dangerous write there is: a record that is newer than the newest task commit tells the leader that nobody is
left to fence. So the ids that it would have fenced are fenced here first.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from eosctl.core.config_records import task_count_key
from eosctl.core.config_topic import ConnectorState
from eosctl.core.connect_group import EMPTY, STABLE
from eosctl.core.fencing import Outcome, plan_items
from eosctl.core.ids import Owner
from eosctl.core.task_count_findings import MAX_PLAUSIBLE_TASKS
from eosctl.core.task_count_writes import decisions, left_out, with_record
from eosctl.core.task_counts import alive_tasks, fencing_decision, plugin_type
from eosctl.core.wording import counted
from eosctl.errors import ExitCode, RefusedError, StalePlanError
from eosctl.ops.app import App
from eosctl.ops.fence import FencePlan, apply_fence, plan_fence
from eosctl.ops.fence_gather import FenceRequest
from eosctl.ops.task_count_record import Scene, find_connector, newest_record, with_whole_timeout, write_record
from eosctl.ops.task_counts import ConfigTopic, read_config_topic
from eosctl.ops.workers import read_group, running_tasks
from eosctl.report import Problem, Report, Row

_NAMED = 5


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """Which record; `fence` False leaves the ids of the old record as they are."""

    connector: str
    count: int
    fence: bool = True


@dataclass(frozen=True, slots=True)
class WritePlan:
    """What would be written and fenced, and what that was decided from."""

    request: WriteRequest
    scene: Scene
    fence: FencePlan | None
    problems: tuple[Problem, ...] = ()

    @property
    def changes_something(self) -> bool:
        """Whether the record, or its order, would be another one."""
        there = self.scene.connector
        return there.task_count_record != self.request.count or there.pending_fencing


def plan_write(app: App, request: WriteRequest) -> WritePlan:
    """Reads topic, group and coordinators.

    Raises NotFoundError for an unknown connector; RefusedError while it has tasks, while the group is neither Stable
    nor Empty, and for a record that would leave out ids that are alive.
    """
    scene = _observe(app, request.connector)
    fence = None
    if request.fence and scene.connector.task_count_record:
        _refuse_implausible(scene.connector)
        fence = plan_fence(app, FenceRequest(connector=request.connector))
    _refuse_left_out(app, request, fence.wanted() if fence else ())
    problems = [*_not_fenced(request, scene), *(fence.problems if fence else ())]
    return WritePlan(request, scene, fence, tuple(problems))


def _observe(app: App, name: str) -> Scene:
    group, _cluster_id = read_group(app)
    if group.state not in (STABLE, EMPTY):
        raise RefusedError(
            f"the group {group.group_id} is {group.state}: who runs what is not known now; nothing was written",
            hint="Run again when the rebalance is over.",
        )
    with app.topics() as store:
        topic = read_config_topic(app, store)
    connector = find_connector(topic, name)
    if plugin_type(connector.config) == "sink":
        raise RefusedError(f"{name} is a sink connector: it has no task-count record; nothing was written")
    if group.state == STABLE:
        _refuse_tasks(app, topic, connector)
    return Scene(topic.cluster_id, connector, newest_record(topic, connector), group.state, group.leader_url)


def _refuse_tasks(app: App, topic: ConfigTopic, connector: ConnectorState) -> None:
    at_connect = running_tasks(app)
    if connector.name not in at_connect and connector.config is not None:
        raise RefusedError(
            f"topic {topic.read.topic} has the config of {connector.name}, which the workers do not know: whether it "
            "runs can't be told; nothing was written",
            hint="Name a worker and the config topic of the same group.",
        )
    tasks = at_connect.get(connector.name, ())
    if tasks:
        listed = ", ".join(f"task {task.task} is {task.state} at {task.worker_id}" for task in tasks[:_NAMED])
        raise RefusedError(
            f"connector {connector.name} has {counted(len(tasks), 'task')} ({listed}); nothing was written",
            hint=f"PUT /connectors/{connector.name}/stop (Kafka 3.5+), then run again. If all of them are FAILED in "
            f"zombie fencing: eosctl rescue --connector {connector.name}",
        )


def _refuse_implausible(connector: ConnectorState) -> None:
    recorded = connector.task_count_record or 0
    if not 0 <= recorded <= MAX_PLAUSIBLE_TASKS:
        raise RefusedError(
            f"the record says {recorded} tasks, which no connector has: fencing so many ids would never end",
            hint="Fence the ids that exist (eosctl fence --prefix GROUP-CONNECTOR-), then write with --no-fence.",
        )


def _refuse_left_out(app: App, request: WriteRequest, fenced: Sequence[str]) -> None:
    group_id = app.target.require_group_id()
    with app.transactions() as admin:
        alive = alive_tasks(admin.list_transactions(), group_id, [request.connector]).get(request.connector, [])
        beyond = left_out(alive, request.count, fenced=set(fenced))
        ids = [task.transactional_id for task in beyond]
        described = admin.describe_transactions(ids) if ids else {}
    owner = Owner("task", request.connector)
    items = plan_items(ids, described, owner_of_id=lambda _id: owner, live={}, create_unknown=False)
    missed = [
        task
        for task, item in zip(beyond, items, strict=True)
        if item.outcome is not Outcome.SKIPPED_UNKNOWN and not item.already_fenced
    ]
    if missed:
        names = " ".join(task.transactional_id for task in missed[:_NAMED]) + (" ..." if len(missed) > _NAMED else "")
        raise RefusedError(
            f"a record of {request.count} would leave out {counted(len(missed), 'known id')}: {names}; "
            "nothing was written",
            hint=f"Write at least {missed[-1].task + 1}, or fence them first: eosctl fence {names}",
        )


def _not_fenced(request: WriteRequest, scene: Scene) -> list[Problem]:
    recorded = scene.connector.task_count_record
    if request.fence or not recorded:
        return []
    due = fencing_decision(scene.connector).fence_count > 0
    lost = "; fencing is due, and this record tells the leader that it is done" if due else ""
    return [
        Problem(
            "not_fenced",
            f"--no-fence: the {recorded} recorded ids stay as they are{lost}",
            hint=f"eosctl fence --connector {request.connector} --tasks {recorded}",
            severity="warning",
        )
    ]


def _connect_can(request: WriteRequest, scene: Scene) -> list[Problem]:
    """What to use instead: a stopped connector's ids are fenced, and a record written, by the leader when asked."""
    due = fencing_decision(scene.connector)
    if not due.fence_count or scene.connector.target_state != "STOPPED" or scene.leader_url is None:
        return []
    return [
        Problem(
            "connect_can",
            f"Connect can do this itself: its leader ({scene.leader_url}) would fence the {due.fence_count} recorded "
            f"ids and write a record of {due.writes}",
            hint=f"eosctl fence --connector {request.connector} --via connect",
            severity="warning",
        )
    ]


def show_write(app: App, plan: WritePlan) -> Report:
    """The plan: the record before and after, and what the leader decides with each."""
    after = with_record(plan.scene.connector, plan.request.count)
    outcome = "would_write" if plan.changes_something else "unchanged"
    problems = (*plan.problems, *_connect_can(plan.request, plan.scene))
    return _report(app, "task-counts-write-plan", plan, after, outcome, problems)


def apply_write(app: App, plan: WritePlan) -> Report:
    """Fences, writes and reads back if the plan still holds; raises StalePlanError or RefusedError before that.

    The deadline starts anew: the time in which a person read the plan does not count.
    """
    app = with_whole_timeout(app)
    _recheck(plan.scene, _observe(app, plan.request.connector))
    kind, problems = "task-counts-write-result", list(plan.problems)
    fenced = apply_fence(app, plan.fence) if plan.fence else None
    if fenced is not None and fenced.exit_code is not ExitCode.OK:
        problems += [problem for problem in fenced.problems if problem.severity == "error"]
        not_written = Problem("not_written", "not every recorded id is fenced, so the record was not written")
        report = _report(app, kind, plan, plan.scene.connector, "not_written", (*problems, not_written), fenced=fenced)
        return replace(report, exit_code=fenced.exit_code)
    if fenced is not None:
        _recheck(plan.scene, _observe(app, plan.request.connector))  # fencing many ids takes a while
    written = write_record(app, plan.scene, plan.request.count, name="task-counts-write")
    if written.failure is not None:
        problems.append(Problem.of(written.failure))
    data = {"backup": written.backup, "undo": undo_command(plan.scene, plan.request)}
    report = _report(app, kind, plan, written.now, written.outcome, problems, fenced=fenced, data=data)
    return report if written.outcome == "written" else replace(report, exit_code=ExitCode.PARTIAL)


def _recheck(then: Scene, now: Scene) -> None:
    if then.cluster_id != now.cluster_id:
        raise StalePlanError(f"the plan was made for cluster {then.cluster_id}, this is {now.cluster_id}")
    if then.connector != now.connector or then.group_state != now.group_state:
        raise StalePlanError(
            f"connector {then.connector.name} or its group changed since the plan was made; no record was written",
            hint="Plan again.",
        )


def undo_command(scene: Scene, request: WriteRequest) -> str | None:
    """The command that writes the old count again; None where there was no record, which can't be written."""
    count = scene.connector.task_count_record
    if count is None:
        return None
    return shlex.join(["eosctl", "task-counts", "write", request.connector, "--count", str(count)])


def _report(
    app: App,
    kind: str,
    plan: WritePlan,
    after: ConnectorState | None,
    outcome: str,
    problems: Sequence[Problem],
    *,
    fenced: Report | None = None,
    data: Mapping[str, object] | None = None,
) -> Report:
    before, shown = plan.scene.connector, fenced or (plan.fence.report(app) if plan.fence else None)
    fence = None if shown is None else {"rows": list(shown.rows), "summary": dict(shown.summary)}
    row: Row = {
        "connector": before.name,
        "key": task_count_key(before.name).decode(),
        "before": _cell(before),
        "after": None if after is None else _cell(after),
        "decision_before": decisions(before),
        "decision_after": None if after is None else decisions(after),
        "outcome": outcome,
    }
    return Report(
        kind=kind,
        rows=[row],
        summary={"fences": len(plan.fence.wanted()) if plan.fence else 0, "outcome": outcome},
        data={"fence": fence, "overrides": [] if plan.request.fence else ["no-fence"], **(data or {})},
        target={"kafka_cluster_id": plan.scene.cluster_id, "group_id": app.target.group_id},
        problems=problems,
    )


def _cell(connector: ConnectorState) -> Row | None:
    if connector.task_count_record is None:
        return None
    return {"task_count": connector.task_count_record, "offset": connector.record_offset}
