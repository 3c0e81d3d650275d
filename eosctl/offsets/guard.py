"""Whether offsets may be written now: a running task would write its own after ours, or never see ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from eosctl.app import App
from eosctl.connectors.ending_tasks import ENDING_PATIENCE_S, TasksLeft, tasks_left
from eosctl.connectors.statuses import connector_statuses
from eosctl.core.allowances import Waiver
from eosctl.core.ids import stop_request
from eosctl.core.wording import counted
from eosctl.core.workers.connector_entry import ConnectorEntry
from eosctl.deadline import Deadline
from eosctl.errors import NotFoundError, RefusedError
from eosctl.group.absent import Known, refuse_never_there, require_ever_there
from eosctl.group.gather import discover_urls, read_group
from eosctl.group.topics.config_reader import find_config_topic
from eosctl.offsets import codes
from eosctl.report import Problem

_POLL_S = 0.25
_FORCE = f"{Waiver.FORCE_RUNNING} writes all the same."


def refuse_running(app: App, connectors: Sequence[str], *, workers_down: bool, force_running: bool) -> None:
    """Raises RefusedError unless the connectors are STOPPED and no member has a task, or the group is gone.

    The latter with `workers_down`. Tasks that are about to end are waited for.
    """
    if force_running:
        return
    if workers_down:
        _refuse_members(app, connectors)
        return
    there = _statuses(app)
    _refuse_not_stopped(there, connectors, None)
    _refuse_strangers(app, [name for name in connectors if name not in there])
    _refuse_not_stopped(there, connectors, _await_ending(app, connectors))


def refuse_running_source(
    there: App, connectors: Sequence[str], *, profile: str, workers_down: bool, force_running: bool
) -> None:
    """Raises RefusedError while one of `connectors` runs on a cluster that is only read: its offsets move on.

    Where nobody can be asked there is nothing to refuse; `source_problem` says so in the plan.
    """
    urls = [] if force_running else _urls(there)
    if not urls:
        return
    if workers_down and there.target.group_id is not None:
        _refuse_members(there, connectors)
        return
    running = _running(_statuses_at(there, urls), connectors, tasks_left(there, connectors))
    if running:
        raise RefusedError(
            f"not stopped on the cluster of profile {profile}: {', '.join(running)}; nothing was written",
            hint=f"Stop them there ({stop_request(profile=profile)}), then run again. {_FORCE}",
        )


def source_problem(there: App, profile: str) -> Problem | None:
    """A warning where nobody can be asked whether connectors run on a cluster that is only read."""
    if _urls(there):
        return None
    return Problem(
        codes.SOURCE_NOT_CHECKED,
        f"whether the connectors still run on the cluster of profile {profile} is not known: it names no worker, and "
        "no group that has one",
        hint="Stop them there first, or add connect_url to the profile: else both clusters read on from here.",
        severity="warning",
    )


def running_connectors(app: App, connectors: Sequence[str]) -> list[str]:
    """Those of `connectors` that exist and are not STOPPED, or still have tasks, as `name (STATE, n tasks)`."""
    return _running(connector_statuses(app), connectors, tasks_left(app, connectors))


def _statuses(app: App) -> Mapping[str, ConnectorEntry]:
    """What the workers say, those that were named or else the group's.

    Raises RefusedError where there are none, NotFoundError where their group was never there.
    """
    urls = _urls(app)
    if not urls:
        require_ever_there(app, Known(may_be_new=True))
        raise RefusedError(
            "whether the connectors' tasks run is not known, as there is no Connect worker to ask; nothing was written",
            hint=f"Give --connect-url, or {Waiver.WORKERS_DOWN} if the whole group is stopped. {_FORCE}",
        )
    return _statuses_at(app, urls)


def _statuses_at(app: App, urls: Sequence[str]) -> Mapping[str, ConnectorEntry]:
    return connector_statuses(replace(app, target=replace(app.target, connect_urls=tuple(urls))))


def _refuse_not_stopped(there: Mapping[str, ConnectorEntry], connectors: Sequence[str], left: TasksLeft | None) -> None:
    running = _running(there, connectors, left)
    if running:
        raise RefusedError(
            f"not stopped: {', '.join(running)}; nothing was written",
            hint=f"Stop them ({stop_request()}), then run again. {_FORCE}",
        )


def _urls(app: App) -> list[str]:
    """The workers that were named, or else the group's."""
    may_ask_group = app.target.client is not None and app.target.group_id is not None
    try:
        return list(discover_urls(app)) if app.target.connect_urls or may_ask_group else []
    except NotFoundError:
        return []


def _running(there: Mapping[str, ConnectorEntry], connectors: Sequence[str], left: TasksLeft | None) -> list[str]:
    """Those that are not STOPPED; with `left` also those of which REST shows tasks that members do not disprove."""
    return [
        f"{name} ({status.state}, {counted(len(status.tasks), 'task')})"
        for name in connectors
        if (status := there.get(name)) is not None
        and (
            status.state != "STOPPED"
            or (left is not None and status.tasks and not left.disproves({task.worker_id for task in status.tasks}))
        )
    ]


def _refuse_strangers(app: App, absent: Sequence[str]) -> None:
    """A connector that the workers do not know has no tasks, unless they are workers of another group."""
    if not absent:
        return
    with app.topics() as topics:
        found = find_config_topic(app, topics)
    known = {} if found is None else found.state.connectors
    strangers = [name for name in absent if name in known and known[name].config is not None]
    if strangers:
        raise RefusedError(
            f"topic {app.target.config_topic} has the config of {', '.join(strangers)}, which the worker does not "
            "know: it is unknown whether tasks run; nothing was written",
            hint=f"Name a worker and the config topic of the same group. {_FORCE}",
        )


def _await_ending(app: App, connectors: Sequence[str]) -> TasksLeft:
    """Raises RefusedError while members still hold tasks and the patience with them is over."""
    patience = Deadline.after(min(ENDING_PATIENCE_S, app.deadline.remaining_s()), app.clock)
    for _ in patience.rounds(_POLL_S):
        left = tasks_left(app, connectors)
        if not left.ending:
            return left
    raise RefusedError(
        f"still ending: {', '.join(map(str, left.ending))}; nothing was written",
        hint="REST shows them no more, but their workers have not let go of them, and they may write offsets once "
        f"more: run again in some seconds. {_FORCE}",
    )


def _refuse_members(app: App, connectors: Sequence[str]) -> None:
    group, _cluster_id = read_group(app, gone_ok=True)
    if group.members:
        raise RefusedError(
            f"{Waiver.WORKERS_DOWN} was given, but group {group.group_id} has {counted(len(group.members), 'member')}; "
            "nothing was written",
            hint=f"Stop the workers, or stop the connectors and leave {Waiver.WORKERS_DOWN} out.",
        )
    refuse_never_there(app, group, connectors, Known(may_be_new=True))
