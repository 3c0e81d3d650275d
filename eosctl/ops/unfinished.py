"""What this machine's journals tell of commands that were cut off, or are at work now: doctor's first check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from shlex import quote

from eosctl.core.config_topic import ConfigState, ConnectorState
from eosctl.core.findings import ERROR, INFO, Finding
from eosctl.core.upgrade_observation import ObservedConnector
from eosctl.ops.app import App
from eosctl.ops.journal import journal_of
from eosctl.ops.rescue_journal import unfinished_rescue
from eosctl.ops.switch_journal import unfinished_switch
from eosctl.ops.switch_look import switch_command
from eosctl.ops.upgrade_apply import describe_roll
from eosctl.ops.upgrade_journal import newest_roll, upgrade_journal
from eosctl.report import rfc3339


def unfinished_work(
    app: App, cluster_id: str, *, connectors: Iterable[ObservedConnector], config: ConfigState | None = None
) -> Iterator[Finding]:
    """An upgrade of the group, and switches and rescues of its connectors, that were begun here and are not over.

    `connectors` are those that there are; `config` is what the config topic has, without which no rescue is judged.
    Raises EosctlError where a journal can't be read.
    """
    if app.target.group_id is not None:
        yield from _upgrade(app, cluster_id)
    for each in connectors:
        yield from _switch(app, cluster_id, each.name, each.states.get("connector", "unknown"))
        state = None if config is None else config.connectors.get(each.name)
        if state is not None:
            yield from _rescue(app, cluster_id, each, state)


def _upgrade(app: App, cluster_id: str) -> Iterator[Finding]:
    journal = upgrade_journal(app, cluster_id)
    roll = newest_roll(journal)
    if roll is not None and roll.unfinished:
        yield _finding(
            "upgrade_unfinished", str(app.target.group_id), describe_roll(roll),
            f"`eosctl upgrade apply --driver {quote(roll.driver)} --resume` goes on; `eosctl upgrade status` shows it.",
            journal.holder(),
        )  # fmt: skip


def _switch(app: App, cluster_id: str, connector: str, state: str) -> Iterator[Finding]:
    journal = journal_of(app, "offsets-switch", connector, cluster_id=cluster_id)
    begun = unfinished_switch(journal)
    if begun is None:
        return
    on, back = (switch_command(connector, to) for to in (begun.target, begun.origin))
    moves = f"from {begun.origin} to {begun.target}, begun {rfc3339(begun.began_ms)}"
    yield _finding(
        "switch_unfinished", connector,
        f"a switch of {connector} {moves}, is not over: the connector is {state}, and was "
        f"{begun.state} before",
        f"`{on}` goes on, `{back}` goes back.", journal.holder(),
    )  # fmt: skip


def _rescue(app: App, cluster_id: str, connector: ObservedConnector, state: ConnectorState) -> Iterator[Finding]:
    """Of the newest task set only, and while a task of it does not run or is still to be fenced."""
    journal = journal_of(app, "rescue", connector.name, cluster_id=cluster_id)
    begun = unfinished_rescue(journal, state)
    tasks = connector.tasks().values()
    if begun is None or not (state.pending_fencing or any(task != "RUNNING" for task in tasks)):
        return
    yield _finding(
        "rescue_unfinished", connector.name,
        f"a rescue of {connector.name}, begun {rfc3339(begun.began_ms)}, is not over; done: "
        f"{', '.join(begun.done) or 'nothing'}",
        f"`eosctl rescue --connector {quote(connector.name)}` goes on.", journal.holder(),
    )  # fmt: skip


def _finding(code: str, subject: str, message: str, fix: str, holder: str | None) -> Finding:
    """An error, unless an eosctl is at work on it now."""
    if holder is None:
        return Finding(code, ERROR, subject, message, fix)
    return Finding(code, INFO, subject, f"{message}; eosctl is at work on it now ({holder})", "Wait for it.")
