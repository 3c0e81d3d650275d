"""Whether offsets may be written now: a running task would write its own after ours, or never see ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

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
