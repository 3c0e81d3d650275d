"""Whether offsets may be written now: a running task would write its own after ours, or never see ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from eosctl.core.config_topic import fold_config_topic
from eosctl.errors import RefusedError
from eosctl.ops.app import App

_FORCE = "--force-running writes all the same."


def refuse_running(app: App, connectors: Sequence[str], *, workers_down: bool, force_running: bool) -> None:
    """Raises RefusedError unless the connectors are STOPPED without tasks, or the group is empty (`workers_down`)."""
    if force_running:
        return
    if workers_down:
        _refuse_members(app)
        return
    if not app.target.connect_urls:
        raise RefusedError(
            "whether the connectors' tasks run is not known, as no Connect worker was named; nothing was written",
            hint=f"Give --connect-url, or --workers-down if the whole group is stopped. {_FORCE}",
        )
    running = running_connectors(app, connectors)
    if running:
        raise RefusedError(
            f"not stopped: {', '.join(running)}; nothing was written",
            hint=f"Stop them (PUT /connectors/NAME/stop), then run again. {_FORCE}",
        )
    _refuse_strangers(app, connectors)


def _refuse_strangers(app: App, connectors: Sequence[str]) -> None:
    """A connector that the worker does not know has no tasks, unless the worker is one of another group."""
    url, topic = app.target.connect_urls[0], app.target.config_topic
    there = app.worker(url).connectors()
    absent = [name for name in connectors if name not in there]
    if not absent:
        return
    with app.topics() as topics:
        if topic not in topics.describe([topic]):
            return
        state = fold_config_topic(topics.read(topic).records)
    strangers = [name for name in absent if name in state.connectors and state.connectors[name].config is not None]
    if strangers:
        raise RefusedError(
            f"topic {topic} has the config of {', '.join(strangers)}, which the worker at {url} does not know: whether "
            "tasks run can't be told; nothing was written",
            hint=f"Name a worker and the config topic of the same group. {_FORCE}",
        )


def running_connectors(app: App, connectors: Sequence[str]) -> list[str]:
    """Those of `connectors` that exist and are not STOPPED, or still have tasks, as `name (STATE, n tasks)`."""
    there = app.worker(app.target.connect_urls[0]).connectors()
    found = []
    for name in connectors:
        status = cast("Mapping[str, Any]", there.get(name, {}).get("status") or {})
        state, tasks = (status.get("connector") or {}).get("state", "unknown"), status.get("tasks") or ()
        if name in there and (state != "STOPPED" or tasks):
            found.append(f"{name} ({state}, {len(tasks)} tasks)")
    return found


def _refuse_members(app: App) -> None:
    group_id = app.target.require_group_id()
    with app.transactions() as admin:
        members = admin.describe_group(group_id).members
    if members:
        raise RefusedError(
            f"--workers-down was given, but group {group_id} has {len(members)} members; nothing was written",
            hint="Stop the workers, or stop the connectors and leave --workers-down out.",
        )
