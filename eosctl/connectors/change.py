"""`connectors stop`, `pause`, `resume`, `restart` and `trace`: changes a connector's state, and shows its failures.

A change is planned, requested of one worker, and awaited. Connect answers before anything has happened; here the
outcome is the state that the worker and the group's members finally show, with the failure of a FAILED part.

`connectors trace` shows the failure of each FAILED part of a connector, and reads only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors import codes
from eosctl.connectors.holders import NAME_CONFIG_TOPIC, asked_state, is_at_rest
from eosctl.connectors.look import (
    FAILED,
    PAUSED,
    RUNNING,
    STATE_AFTER,
    STOPPED,
    ConnectorNow,
    failures_of,
    look_at,
    named_cluster_id,
    reach_worker,
)
from eosctl.connectors.rows import (
    CONNECTORS_CHANGE_PLAN,
    CONNECTORS_CHANGE_RESULT,
    CONNECTORS_TRACE,
    ChangeData,
    ChangeOutcome,
    ChangeRow,
    ChangeSummary,
    TraceRow,
    TraceSummary,
    Verb,
)
from eosctl.connectors.waiting import await_connector, await_start, await_stopped
from eosctl.core.versions import STOPPABLE_SINCE, is_older, shown_version
from eosctl.core.wording import counted
from eosctl.deadline import Deadline
from eosctl.errors import (
    EosctlError,
    ExitCode,
    InterruptedByUserError,
    RefusedError,
    StalePlanError,
    UnsupportedError,
)
from eosctl.failures.reading import causes_of
from eosctl.foreign import arguments
from eosctl.group.modes import refuse_unreachable
from eosctl.output.rows import Kind
from eosctl.plan import Plan
from eosctl.report import Problem, Report

_SHOWS_S = 10.0  # REST shows a restart, and the first tasks after a stop, a moment later, and some never
_AT_REST = {RUNNING, PAUSED, FAILED}
_RESTARTING = "RESTARTING"


_REACHED = {Verb.STOP: STOPPED, Verb.PAUSE: PAUSED, Verb.RESUME: RUNNING}
_BACK = {STOPPED: Verb.STOP, PAUSED: Verb.PAUSE, RUNNING: Verb.RESUME}


class ChangePlan(Struct, frozen=True):
    """A requested change of a connector, and its present state; `moved` has each part that changes, with its state
    afterwards.

    A part is the connector itself or a task of it; None is the state of a task that is no more. `unread` is why it is
    not known whether a connector that REST shows at rest was asked to start.
    """

    connector: str
    verb: Verb
    now: ConnectorNow
    cluster_id: str
    moved: Mapping[str, str | None]
    only_failed: bool = False
    unread: EosctlError | None = None

    @property
    def undo(self) -> str | None:
        """The command that brings back the state that was before; None after a restart."""
        before = STATE_AFTER.get(self.now.state)
        if self.verb is Verb.RESTART or before is None or before == _REACHED[self.verb]:
            return None
        return f"eosctl connectors {_BACK[before]} {arguments(self.connector)}"


def plan_change(app: App, connector: str, verb: Verb, *, only_failed: bool = False) -> ChangePlan:
    """Look at the connector through the first worker that answers, and plan the change.

    Raises NotFoundError for an unknown connector, UnsupportedError for a name that no request can have and for a stop
    before Kafka 3.5, RefusedError for a worker of another Kafka cluster or group and for the restart of a stopped
    connector.
    """
    worker = reach_worker(app, named_cluster_id(app))
    now = worker.connector(connector)
    refuse_unreachable(connector, app.worker(now.url))
    if verb is Verb.STOP and is_older(worker.version, STOPPABLE_SINCE):
        raise UnsupportedError(
            f"the worker at {now.shown_url} runs {shown_version(worker.version)}: a connector can be stopped from "
            "Kafka 3.5 on (KIP-875)",
            hint=f"`eosctl connectors pause {arguments(connector)}` keeps its tasks, and their ids, in memory; a "
            "connector that is deleted has none.",
        )
    if verb is Verb.RESTART and now.state == STOPPED and not only_failed:
        raise RefusedError(
            f"connector {connector} is STOPPED: it has nothing to restart",
            hint=f"Start it: eosctl connectors resume {arguments(connector)}",
        )
    unread = None
    if verb is Verb.STOP and is_at_rest(app, connector, now.entry):
        now, moved, unread = _look_at_rest(app, connector, now)
    else:
        moved = _moved(now, verb, only_failed=only_failed)
    return ChangePlan(connector, verb, now, worker.cluster_id, moved, only_failed, unread)


def _look_at_rest(
    app: App, connector: str, now: ConnectorNow
) -> tuple[ConnectorNow, dict[str, str | None], EosctlError | None]:
    """Look whether a connector that REST shows at rest was asked to start; return what a stop moves then.

    Where that is not known, the connector is stopped again: one that is at rest stays so. Where no Kafka cluster is
    named, REST alone decides.
    """
    if app.target.client is None:
        return now, {}, None
    try:
        asked = asked_state(app, connector)
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        return now, _moved(now, Verb.STOP), exc
    if asked is None:
        message = f"topic {app.target.config_topic} has no config of {connector}: it is not known whether it was asked "
        return now, _moved(now, Verb.STOP), EosctlError(f"{message}to start", hint=NAME_CONFIG_TOPIC)
    if asked == STOPPED:
        return now, {}, None
    now = await_start(app, connector, now.url)
    return now, _moved(now, Verb.STOP), None


def _moved(now: ConnectorNow, verb: Verb, *, only_failed: bool = False) -> dict[str, str | None]:
    """Return the parts that change. Neither pause nor resume changes a FAILED one (`WorkerConnector.doTransitionTo`,
    4.3).
    """
    states = now.parts.states
    if verb is Verb.RESTART:
        after = STATE_AFTER.get(now.state, RUNNING)
        return {part: after for part, state in states.items() if state == FAILED or not only_failed}
    if verb is Verb.STOP:
        return {part: STOPPED if part == "connector" else None for part in states}
    return {part: _REACHED[verb] for part, state in states.items() if state not in (FAILED, _REACHED[verb])}


def prepare_change(app: App, connector: str, verb: Verb, *, only_failed: bool = False) -> Plan:
    """Return the plan to make the change; raises as `plan_change`."""
    plan = plan_change(app, connector, verb, only_failed=only_failed)
    apply = partial(apply_change, app, plan) if plan.moved else None
    return Plan(partial(show_change, app, plan), f"{verb.capitalize()} {connector}?", apply, app.target)


def show_change(app: App, plan: ChangePlan) -> Report:
    """Report each part that changes, before and after."""
    states = plan.now.parts.states
    rows = [
        _row(
            plan,
            part,
            after=after,
            outcome="would_be_asked" if _stays(plan, states.get(part), after) else "would_change",
        )
        for part, after in plan.moved.items()
    ]
    return _report(app, CONNECTORS_CHANGE_PLAN, plan, plan.now, rows, problems=_doubts(plan))


def _stays(plan: ChangePlan, before: str | None, after: str | None) -> bool:
    """Check whether REST shows no change of a part: it has the state already that is asked for again."""
    return plan.verb is Verb.STOP and before == after


def _outcome(plan: ChangePlan, before: str | None, after: str | None) -> ChangeOutcome:
    if after == FAILED:
        return "failed"
    return "asked" if _stays(plan, before, after) else "changed"


def _doubts(plan: ChangePlan) -> list[Problem]:
    """Return the warnings about what the change leaves as it is, and about what is not known."""
    if plan.unread is not None:
        return [replace(Problem.of(plan.unread).as_warning(), unseen=True)]
    failed = plan.now.parts.failed()
    if not failed or plan.verb not in (Verb.PAUSE, Verb.RESUME):
        return []
    return [
        Problem(
            codes.FAILED_STAYS,
            f"{plan.verb} does not change what is FAILED: {counted(len(failed), 'part')} of {plan.connector}",
            f"eosctl connectors restart --failed {arguments(plan.connector)}",
        )
    ]


def apply_change(app: App, plan: ChangePlan) -> Report:
    """Ask the worker and wait for the outcome; raises StalePlanError where the connector has changed since the plan.

    Raises DeadlineError, too; the requested change may still come later. A stop of what may have been asked to start is
    PARTIAL: the state that REST shows is that from before.
    """
    app = app.with_whole_timeout()
    before = look_at(app, plan.connector, plan.now.url)
    if before.parts.states != plan.now.parts.states:
        raise StalePlanError(
            f"connector {plan.connector} changed since the plan was made; nothing was changed", hint="Plan again."
        )
    worker = app.worker(plan.now.url)
    if plan.verb is Verb.RESTART:
        worker.restart(plan.connector, only_failed=plan.only_failed)
    else:
        worker.set_state(plan.connector, plan.verb)
    try:
        now = _await_outcome(app, plan)
    except KeyboardInterrupt as exc:
        message = f"interrupted while waiting for {plan.connector}; the change was requested and may still come"
        raise InterruptedByUserError(message, hint=f"Look again: {_look(plan.connector)}") from exc
    parts = dict.fromkeys([*plan.moved, *now.parts.states])
    was = plan.now.parts.states
    rows = [
        _row(plan, part, after=state, outcome=_outcome(plan, was.get(part), state))
        for part, state in ((part, now.parts.states.get(part)) for part in parts)
        if part in plan.moved or state != was.get(part)
    ]
    failures = _failures(now) if plan.verb in (Verb.RESUME, Verb.RESTART) else _doubts(plan)
    report = _report(app, CONNECTORS_CHANGE_RESULT, plan, now, rows, problems=failures)
    if any(each.severity == "error" for each in failures):
        return replace(report, exit_code=ExitCode.FAILED)
    return replace(report, exit_code=ExitCode.PARTIAL) if any(each.unseen for each in failures) else report


def _look(connector: str) -> str:
    """Return the command that shows the connector's state."""
    return f"eosctl connectors trace {arguments(connector)}"


def _await_outcome(app: App, plan: ChangePlan) -> ConnectorNow:
    """Wait for the change. A part that shows nothing new for a while was restarted too quickly to be seen, or not at
    all.
    """
    name, url = plan.connector, plan.now.url
    hint = f"It may come later all the same: {_look(name)}"
    if plan.verb is Verb.STOP:
        return await_stopped(app, name, url, hint=hint, rest_suffices=True)
    soon = Deadline.after(min(_SHOWS_S, app.deadline.remaining_s() / 2), app.clock)
    before, seen = _shown(plan.now), set[str]()
    stuck: list[str] = []

    def restarted(now: ConnectorNow) -> bool:
        stuck[:] = [
            f"{part} at {now.parts.workers.get(part, '?')}"
            for part in plan.moved
            if now.parts.states.get(part) == _RESTARTING
        ]
        shown = _shown(now)
        seen.update(part for part in plan.moved if shown.get(part) != before[part])
        states = [now.parts.states.get(part, RUNNING) for part in plan.moved]
        return set(states) <= _AT_REST and (seen >= plan.moved.keys() or soon.expired())

    def reached(now: ConnectorNow) -> bool:
        wanted = {_REACHED[plan.verb], FAILED}
        least = 1 if now.state == RUNNING and not soon.expired() else 0
        complete = len(now.tasks) == max(least, now.task_count)
        return complete and {now.state, *now.tasks} <= wanted

    def told() -> str:
        if not stuck:
            return ""
        return (
            f"; RESTARTING is {', '.join(stuck)}: it takes long to start, or its start failed, which REST never shows"
        )

    if plan.verb is Verb.RESTART:
        doing = f"waiting for {name} to be restarted"
        if_stuck = f"What stays RESTARTING has its reason in the log of its worker. {hint}"
        return await_connector(app, name, url, restarted, doing=doing, hint=if_stuck, told=told)
    doing = f"waiting for {name} to be {_REACHED[plan.verb]} with all its tasks"
    return await_connector(app, name, url, reached, doing=doing, hint=hint)


def _shown(now: ConnectorNow) -> dict[str, tuple[str, ...]]:
    """Return the state, the worker and the trace of each part, as REST reports them."""
    parts = now.parts
    return {
        part: (state, parts.workers.get(part, ""), parts.traces.get(part, "")) for part, state in parts.states.items()
    }


def _failures(now: ConnectorNow) -> list[Problem]:
    """Return problems for the FAILED parts; parts with the same failure are one problem."""
    alike: dict[tuple[str, object], list[Problem]] = {}
    for finding in failures_of(now.parts).values():
        problem = Problem(finding.code, finding.message, finding.fix)
        alike.setdefault((finding.code, finding.evidence["trace"]), []).append(problem)
    return [
        same[0] if len(same) == 1 else replace(same[0], message=f"{same[0].message} (and {len(same) - 1} more like it)")
        for same in alike.values()
    ]


def _row(plan: ChangePlan, part: str, *, after: str | None, outcome: ChangeOutcome) -> ChangeRow:
    parts = plan.now.parts
    return ChangeRow(
        connector=plan.connector,
        part=part,
        worker=parts.workers.get(part),
        before=parts.states.get(part),
        after=after,
        outcome=outcome,
    )


def _report(
    app: App, kind: Kind, plan: ChangePlan, now: ConnectorNow, rows: Sequence[ChangeRow], *, problems: Sequence[Problem]
) -> Report:
    return Report(
        kind=kind,
        rows=rows,
        summary=ChangeSummary(
            connector=plan.connector,
            action=plan.verb,
            state=now.state,
            tasks=len(now.tasks),
            failed=len(now.parts.failed()),
        ),
        data=ChangeData(undo=plan.undo if plan.moved else None),
        target={"kafka_cluster_id": plan.cluster_id, "group_id": app.target.group_id},
        problems=problems,
    )


def show_traces(app: App, connector: str) -> Report:
    """Report the chain of causes of each FAILED part, and its trace as the worker has it.

    Raises NotFoundError for an unknown connector, what `no_answer` makes where no worker answers, and RefusedError for
    a worker of another Kafka cluster or group.
    """
    worker = reach_worker(app, named_cluster_id(app))
    now = worker.connector(connector)
    parts = now.parts
    rows = [
        TraceRow(
            connector=connector,
            part=part,
            worker=parts.workers.get(part),
            code=str(finding.code),
            message=finding.message,
            causes=[cause.text for cause in causes_of(parts.traces.get(part, ""))],
            fix=finding.fix,
            trace=parts.traces.get(part),
        )
        for part, finding in failures_of(parts).items()
    ]
    return Report(
        kind=CONNECTORS_TRACE,
        rows=rows,
        summary=TraceSummary(connector=connector, state=now.state, tasks=len(now.tasks), failed=len(rows)),
        target={"kafka_cluster_id": worker.cluster_id, "group_id": app.target.group_id},
    )
