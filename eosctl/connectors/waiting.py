"""Waiting until one worker shows a connector in a state: one loop for all commands that change a state."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.holders import TaskHolders, holders_of_shown
from eosctl.connectors.look import FAILED, STOPPED, ConnectorNow, look_at
from eosctl.deadline import Deadline, Event
from eosctl.errors import ConnectError, DeadlineError, EosctlError, UnauthorizedError
from eosctl.group.observation.rules import observed_connector

POLL_S = 0.25
_TOLD_AFTER_S = 10.0
_LOOK_AGAIN_S = 5.0
_RESTART_SHOWS_S = 3.0
_SHOWS_S = 10.0  # REST shows a state that was asked for a moment later


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
    """Poll until `arrived`. Raises DeadlineError with the state that was last seen, and the text of `told`.

    After a while that state is an event, too, so that users do not wait for a minute without a message.
    Only one request of a worker's reports config and state of one moment, and it reports all connectors: it is sent
    when the connector's own status has changed, and from time to time.
    """
    silent: Deadline | None = Deadline.after(_TOLD_AFTER_S, app.clock)
    now, again = look_at(app, connector, url), Deadline.after(_LOOK_AGAIN_S, app.clock)
    for _ in app.deadline.rounds(POLL_S, least_s=POLL_S):  # another look would fail, and report less
        if again.expired() or _has_changed(app, connector, now):
            now, again = look_at(app, connector, url), Deadline.after(_LOOK_AGAIN_S, app.clock)
        if arrived(now):
            return now
        if silent is not None and silent.expired():
            app.on_event(Event(f"{doing}; now: {_seen(now)}{told()}"))
            silent = None
    raise DeadlineError(f"timed out while {doing}; last seen: {_seen(now)}{told()}", hint=hint)


def await_state(
    app: App, connector: str, url: str, state: str, *, least: int, doing: str, hint: str, failed: str, failed_hint: str
) -> ConnectorNow:
    """Wait until connector and all tasks, `least` or more, are in this state; raises as `await_connector`.

    A FAILED part ends the wait with a ConnectError: `failed` begins its message, and `failed_hint` is its hint.
    """

    def arrived(now: ConnectorNow) -> bool:
        if FAILED in (now.state, *now.tasks):
            raise ConnectError(f"{failed}: {now.trace or 'see the worker'}", hint=failed_hint)
        return now.state == state and len(now.tasks) == max(least, now.task_count) and set(now.tasks) <= {state}

    return await_connector(app, connector, url, arrived, doing=doing, hint=hint)


def _seen(now: ConnectorNow) -> str:
    return f"{now.state}, tasks {', '.join(now.tasks) or 'none'}"


def _has_changed(app: App, connector: str, seen: ConnectorNow) -> bool:
    """Check whether the connector's status differs from the one seen; True where it is unknown."""
    try:
        status = app.worker(seen.url).connector_status(connector)
    except EosctlError:
        return True
    now, then = observed_connector(connector, status), seen.parts
    return (now.states, now.workers, now.traces) != (then.states, then.workers, then.traces)


def await_stopped(app: App, connector: str, url: str, *, hint: str, rest_suffices: bool = False) -> ConnectorNow:
    """Wait until it is STOPPED and no member of the stable group holds a task; raises as `await_connector`.

    Tasks that REST may still show then have ended, and are not returned. With `rest_suffices`, a group that may not be
    described is an event, and REST alone decides.
    """
    held = TaskHolders()

    def over(now: ConnectorNow) -> bool:
        nonlocal held
        if now.state != STOPPED:
            return False
        held = holders_of_shown(app, [connector], {connector: now.entry})
        if rest_suffices and isinstance(held.doubt, UnauthorizedError) and not held.left(connector):
            message = f"whether a member still ends a task of {connector} is not known: {held.doubt.message}"
            app.on_event(Event(message, warning=True))
            return True
        return held.is_at_rest(connector) and look_at(app, connector, url).state == STOPPED

    def told() -> str:
        doubt = "" if held.doubt is None else f"; {held.doubt.message}"
        return doubt + "".join(f"; {each.url} has not let go of task {each.task} yet" for each in held.ending())

    doing = f"waiting for {connector} to be STOPPED without tasks"
    now = await_connector(app, connector, url, over, doing=doing, hint=hint, told=told)
    return replace(now, tasks=(), parts=replace(now.parts, states={"connector": now.state}))


def let_restart_show(app: App, connector: str, url: str, state: str) -> None:
    """Wait some seconds until REST shows a task in another state than before a restart; it may never do so."""
    soon = Deadline.after(min(_RESTART_SHOWS_S, app.deadline.remaining_s() / 2), app.clock)
    for _ in soon.rounds(POLL_S):
        if set(look_at(app, connector, url).tasks) != {state}:
            return


def await_start(app: App, connector: str, url: str) -> ConnectorNow:
    """Wait some seconds until a start that was asked for is shown, and return what is shown: a stop comes after it."""
    soon = Deadline.after(min(_SHOWS_S, app.deadline.remaining_s() / 2), app.clock)
    for _ in soon.rounds(POLL_S):
        now = look_at(app, connector, url)
        if now.state != STOPPED:
            break
    return now
