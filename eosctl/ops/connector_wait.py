"""Waiting until a connector is in a state, as one worker shows it: the one loop of all commands that change a state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from eosctl.errors import DeadlineError
from eosctl.ops.app import App
from eosctl.ops.ending_tasks import TasksLeft, tasks_left
from eosctl.ops.switch_look import STOPPED, ConnectorNow, look_at

POLL_S = 0.25


def await_connector(
    app: App,
    connector: str,
    url: str,
    arrived: Callable[[ConnectorNow], bool],
    *,
    doing: str,
    hint: str,
    told: Callable[[], str] = str,
) -> ConnectorNow:
    """Polls until `arrived`; raises DeadlineError that says what was seen last, and what `told` adds."""
    while True:
        now = look_at(app, connector, url)
        if arrived(now):
            return now
        if app.deadline.remaining_s() <= POLL_S:  # another look would fail, and tell less
            raise DeadlineError(
                f"timed out while {doing}; last seen: {now.state}, tasks {', '.join(now.tasks) or 'none'}{told()}",
                hint=hint,
            )
        app.deadline.sleep(POLL_S)


def await_stopped(app: App, connector: str, url: str, *, hint: str) -> ConnectorNow:
    """Waits until it is STOPPED and no member of the stable group holds a task; raises as `await_connector`.

    Tasks that REST may still show then have ended: they are none of what is returned.
    """
    left = TasksLeft()

    def over(now: ConnectorNow) -> bool:
        nonlocal left
        if now.state != STOPPED:
            return False
        left = tasks_left(app, [connector])
        return not left.ending and left.disproves(now.task_workers) and look_at(app, connector, url).state == STOPPED

    def told() -> str:
        return "".join(f"; {each.url} has not let go of task {each.task} yet" for each in left.ending if each.url)

    doing = f"waiting for {connector} to be STOPPED without tasks"
    now = await_connector(app, connector, url, over, doing=doing, hint=hint, told=told)
    return replace(now, tasks=(), parts=replace(now.parts, states={"connector": now.state}))
