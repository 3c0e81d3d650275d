"""Checks that offsets may be written now: a running task would write its own after ours, or never see ours."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.holders import TaskHolders, holders_now, who_holds
from eosctl.core.allowances import Waiver
from eosctl.core.ids import stop_request
from eosctl.core.wording import counted
from eosctl.errors import DeadlineError, NotFoundError, RefusedError
from eosctl.group.absent import KnownEvidence, refuse_never_there, require_ever_there
from eosctl.group.gather import discover_urls, read_group
from eosctl.group.topics import find_config_topic
from eosctl.offsets import codes
from eosctl.report import Problem

_FORCE = f"{Waiver.FORCE_RUNNING} writes all the same."


def refuse_running(app: App, connectors: Sequence[str], *, workers_down: bool, force_running: bool) -> None:
    """Raise RefusedError unless the connectors are STOPPED and no member has a task, or the group is gone.

    `workers_down` requires the latter. Waits for tasks that are about to end.
    """
    if force_running:
        return
    if workers_down:
        _refuse_members(app, connectors)
        return
    held = _answered(who_holds(_at_workers(app), connectors))
    _refuse_not_stopped(_not_stopped(held, connectors))
    _refuse_strangers(app, [name for name in connectors if name not in held.connectors])
    _refuse_doubt(held)
    if ending := held.ending():
        raise RefusedError(
            f"still ending: {', '.join(map(str, ending))}; nothing was written",
            hint="REST shows them no more, but their workers have not let go of them, and they may write offsets once "
            f"more: run again in some seconds. {_FORCE}",
        )
    _refuse_not_stopped(_running(held, connectors))


def refuse_running_source(
    source: App, connectors: Sequence[str], *, profile: str, workers_down: bool, force_running: bool
) -> None:
    """Raise RefusedError while one of `connectors` runs on a cluster that is only read: its offsets move on.

    Without a worker to ask there is nothing to refuse; the plan then has `source_problem`.
    """
    urls = [] if force_running else _urls(source)
    if not urls:
        return
    if workers_down and source.target.group_id is not None:
        _refuse_members(source, connectors)
        return
    held = _answered(who_holds(_with_workers(source, urls), connectors))
    _refuse_doubt(held)
    if running := _running(held, connectors):
        raise RefusedError(
            f"not stopped on the cluster of profile {profile}: {', '.join(running)}; nothing was written",
            hint=f"Stop them there ({stop_request(profile=profile)}), then run again. {_FORCE}",
        )


def source_problem(source: App, profile: str) -> Problem | None:
    """Warn if no worker can be asked whether connectors run on a cluster that is only read."""
    if _urls(source):
        return None
    return Problem(
        codes.SOURCE_NOT_CHECKED,
        f"whether the connectors still run on the cluster of profile {profile} is not known: it names no worker, and "
        "no group that has one",
        hint="Stop them there first, or add connect_url to the profile: else both clusters read on from here.",
    )


def running_connectors(app: App, connectors: Sequence[str]) -> list[str]:
    """Return which of `connectors` exist and are not STOPPED, or still have tasks, as `name (STATE, n tasks)`."""
    return _running(_answered(holders_now(app, connectors)), connectors)


def _at_workers(app: App) -> App:
    """Return the App with the workers to ask: the given ones, else the group's.

    Raises RefusedError if there are none, NotFoundError if their group never existed.
    """
    urls = _urls(app)
    if not urls:
        require_ever_there(app, KnownEvidence(may_be_new=True))
        raise RefusedError(
            "whether the connectors' tasks run is not known, as there is no Connect worker to ask; nothing was written",
            hint=f"Give --connect-url, or {Waiver.WORKERS_DOWN} if the whole group is stopped. {_FORCE}",
        )
    return _with_workers(app, urls)


def _with_workers(app: App, urls: Sequence[str]) -> App:
    return replace(app, target=replace(app.target, connect_urls=tuple(urls)))


def _answered(held: TaskHolders) -> TaskHolders:
    """Return `held`; raise the workers' error if none of them answered."""
    if held.silence is not None:
        raise held.silence
    return held


def _refuse_not_stopped(running: Sequence[str]) -> None:
    if running:
        raise RefusedError(
            f"not stopped: {', '.join(running)}; nothing was written",
            hint=f"Stop them ({stop_request()}), then run again. {_FORCE}",
        )


def _refuse_doubt(held: TaskHolders) -> None:
    """Raise an error if a group was named and its members do not report what they may run."""
    doubt, group = held.doubt, held.group
    if doubt is None and group is not None and not group.members:
        doubt = NotFoundError(
            f"a worker answers, and the group {group.group_id} has no member", hint="Compare -g with its group.id."
        )
    if doubt is None:
        return
    if isinstance(doubt, DeadlineError):
        raise doubt
    raise RefusedError(
        f"whether a worker still runs their tasks is not known: {doubt.message}; nothing was written",
        hint=" ".join(filter(None, [doubt.hint, _FORCE])),
    )


def _urls(app: App) -> list[str]:
    """Return the given workers, else the group's."""
    may_ask_group = app.target.client is not None and app.target.group_id is not None
    try:
        return list(discover_urls(app)) if app.target.connect_urls or may_ask_group else []
    except NotFoundError:
        return []


def _not_stopped(held: TaskHolders, connectors: Sequence[str]) -> list[str]:
    return [_describe(held, name) for name in connectors if name in held.connectors and not held.is_stopped(name)]


def _running(held: TaskHolders, connectors: Sequence[str]) -> list[str]:
    """Return the connectors that are not STOPPED, or have tasks that are not known to have ended."""
    return [
        _describe(held, name)
        for name in connectors
        if held.left(name) or (name in held.connectors and not held.is_stopped(name))
    ]


def _describe(held: TaskHolders, name: str) -> str:
    state = held.connectors[name].state if name in held.connectors else "not known to REST"
    shown = len(held.connectors[name].tasks) if name in held.connectors else 0
    return f"{name} ({state}, {counted(max(shown, len(held.left(name))), 'task')})"


def _refuse_strangers(app: App, absent: Sequence[str]) -> None:
    """Raise RefusedError if a connector that the workers do not know has a config in the config topic.

    A connector that the workers do not know has no tasks, unless they are workers of another group.
    """
    if not absent:
        return
    with app.topics() as topics:
        found = find_config_topic(app, topics)
    if found is None and app.target.group_id is None:
        raise RefusedError(
            f"the worker does not know {', '.join(absent)}, no group was named, and topic {app.target.config_topic} "
            "does not exist: it is unknown whether tasks run; nothing was written",
            hint=f"Name the group (-g), or its config topic (--config-topic). {_FORCE}",
        )
    known = {} if found is None else found.state.connectors
    strangers = [name for name in absent if name in known and known[name].config is not None]
    if strangers:
        raise RefusedError(
            f"topic {app.target.config_topic} has the config of {', '.join(strangers)}, which the worker does not "
            "know: it is unknown whether tasks run; nothing was written",
            hint=f"Name a worker and the config topic of the same group. {_FORCE}",
        )


def _refuse_members(app: App, connectors: Sequence[str]) -> None:
    group, _cluster_id = read_group(app, gone_ok=True)
    if group.members:
        raise RefusedError(
            f"{Waiver.WORKERS_DOWN} was given, but group {group.group_id} has {counted(len(group.members), 'member')}; "
            "nothing was written",
            hint=f"Stop the workers, or stop the connectors and leave {Waiver.WORKERS_DOWN} out.",
        )
    refuse_never_there(app, group, connectors, KnownEvidence(may_be_new=True))
