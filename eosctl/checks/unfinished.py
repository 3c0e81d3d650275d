"""Commands that were cut off, or are at work now: by this machine's journals, and by the cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from eosctl.app import App
from eosctl.codes import Code
from eosctl.connectors.look import switch_command
from eosctl.core.configs.fold import ConfigState, ConnectorState
from eosctl.core.configs.records import OFFSETS_TOPIC
from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.core.offsets.names import GLOBAL
from eosctl.core.wording import rfc3339
from eosctl.create import codes as create_codes
from eosctl.create.journal import journal_of_create, unfinished_create
from eosctl.foreign import arguments, shell_word
from eosctl.group.observation.rules import ObservedConnector
from eosctl.move import codes as move_codes
from eosctl.move.journal import Direction, arriving_moves, journal_of_moves, read_moves
from eosctl.move.sides import move_command
from eosctl.offsets import codes as switch_codes
from eosctl.offsets.switch.journal import newest_target, unfinished_switch
from eosctl.offsets.switch.traces import begun_before_the_config
from eosctl.rescue import codes as rescue_codes
from eosctl.rescue.plan import unfinished_rescue
from eosctl.state.journal import journal_of
from eosctl.task_counts import codes as task_count_codes
from eosctl.task_counts.clean import clean_journal, unfinished_clean
from eosctl.upgrade import codes as upgrade_codes
from eosctl.upgrade.look import describe_roll
from eosctl.upgrade.roll.owned import newest_roll, upgrade_journal
from eosctl.upgrade.roll.undo import command_to_resume


def unfinished_work(
    app: App, cluster_id: str, *, connectors: Iterable[ObservedConnector], config: ConfigState | None = None
) -> Iterator[Finding]:
    """Yield the group's upgrade, and its connectors' moves, switches, creations and rescues, begun here and not over.

    `connectors` are the existing ones; `config` is the state of the config topic, without which no rescue is judged.
    Raises EosctlError where a journal can't be read.
    """
    if app.target.group_id is not None:
        yield from _upgrade(app, cluster_id)
        yield from _clean(app, cluster_id)
    at_rest = []
    connectors = list(connectors)
    yield from _arriving(app, cluster_id, {each.name for each in connectors})
    for each in connectors:
        state = None if config is None else config.connectors.get(each.name)
        shown = each.states.get("connector", "unknown")
        works = (_move, _switch, _create)
        here = [found for work in works for found in work(app, cluster_id, each.name, shown)]
        yield from here
        if state is not None:
            moved = [] if here else list(_moved(app, cluster_id, state))
            yield from moved
            yield from _rescue(app, cluster_id, each, state)
            if state.target_state == "STOPPED" and not (here or moved):
                at_rest.append(each.name)
    if config is not None:
        yield from begun_before_the_config(app, cluster_id, at_rest, config)


def _upgrade(app: App, cluster_id: str) -> Iterator[Finding]:
    journal = upgrade_journal(app, cluster_id)
    roll = newest_roll(journal)
    if roll is not None and roll.unfinished:
        yield _finding(
            upgrade_codes.UPGRADE_UNFINISHED, str(app.target.group_id), describe_roll(roll),
            f"`{command_to_resume(roll.driver, roll.driver_options, roll.accepted)}` goes on; `eosctl upgrade status` "
            "shows it.",
            journal.holder(),
        )  # fmt: skip


def _clean(app: App, cluster_id: str) -> Iterator[Finding]:
    topic = app.target.config_topic
    journal = clean_journal(app, topic, cluster_id=cluster_id)
    begun = unfinished_clean(journal)
    if begun is not None:
        yield _finding(
            task_count_codes.CLEAN_UNFINISHED, topic,
            f"a run of task-counts clean, begun {rfc3339(begun.began_ms)}, is not over: {topic} still has the settings "
            "that it set",
            "`eosctl task-counts clean` goes on, and sets them back. Restart no worker before.", journal.holder(),
        )  # fmt: skip


def _switch(app: App, cluster_id: str, connector: str, state: str) -> Iterator[Finding]:
    journal = journal_of(app, "offsets-switch", connector, cluster_id=cluster_id)
    begun = unfinished_switch(journal)
    if begun is None:
        return
    on, back = (switch_command(connector, to) for to in (begun.target, begun.origin))
    moves = f"from {begun.origin} to {begun.target}, begun {rfc3339(begun.began_ms)}"
    yield _finding(
        switch_codes.SWITCH_UNFINISHED, connector,
        f"a switch of {connector} {moves}, is not over: the connector is {state}, and was "
        f"{begun.state} before",
        f"`{on}` goes on, `{back}` goes back.", journal.holder(),
    )  # fmt: skip


def _move(app: App, cluster_id: str, connector: str, state: str) -> Iterator[Finding]:
    """Yield a move to another Connect group, or back, that was begun for this connector and is not over."""
    journal = journal_of_moves(app, connector, cluster_id=cluster_id)
    begun = read_moves(journal).unfinished
    if begun is None:
        return
    preposition = "from" if begun.direction is Direction.BACK else "to"
    on, back = (f"`{move_command(connector, flag)}`" for flag in ("--resume", "--back"))
    yield _finding(
        move_codes.MOVE_UNFINISHED, connector,
        f"{begun.direction.words} of {connector} {preposition} group {begun.group_id} (profile {begun.to}), begun "
        f"{rfc3339(begun.began_ms)}, is not over; done: {', '.join(dict.fromkeys(begun.done)) or 'nothing'}; the "
        f"connector is {state} here, and was {begun.state} before",
        f"{on} goes on, {back} goes back." if begun.direction is Direction.THERE else f"{on} goes on.",
        journal.holder(),
    )  # fmt: skip


def _create(app: App, cluster_id: str, connector: str, state: str) -> Iterator[Finding]:
    """Yield a run of `connectors create` that has begun, and is not over: the connector may not have its offsets."""
    journal = journal_of_create(app, connector, cluster_id=cluster_id)
    begun = unfinished_create(journal)
    if begun is not None:
        yield _finding(
            create_codes.CREATE_UNFINISHED, connector,
            f"creating {connector}, begun {rfc3339(begun.time_ms)}, is not over; done: "
            f"{', '.join(begun.done) or 'nothing'}; the connector is {state}",
            begun.way_out(journal), journal.holder(),
        )  # fmt: skip


def _arriving(app: App, cluster_id: str, names: Collection[str]) -> Iterator[Finding]:
    """Yield the moves to this group that are not over: before its offsets are there, a connector would start over."""
    if app.target.group_id is None:
        return
    for name, (moves, journal) in arriving_moves(app, cluster_id, app.target.group_id).items():
        begun = moves.unfinished
        if name in names and begun is not None:
            way = "from this group back" if begun.direction is Direction.BACK else "to this group"
            yield _finding(
                move_codes.MOVE_UNFINISHED, name,
                f"a move of {name} {way}, begun {rfc3339(begun.began_ms)}, is not over",
                "Neither start nor stop it here: `eosctl connectors move --resume`, where it comes from, goes on.",
                journal.holder(),
            )  # fmt: skip


def _moved(app: App, cluster_id: str, connector: ConnectorState) -> Iterator[Finding]:
    """Yield a switch that another machine began and did not end, judged by the cluster: its journal is on that machine.

    Until the config names the target, resuming the connector is enough, and nothing reports a switch.
    """
    if connector.moved_from is None or connector.config is None:
        return
    origin, target = connector.moved_from or GLOBAL, str(connector.config.get(OFFSETS_TOPIC) or GLOBAL)
    if _ended_here(app, cluster_id, connector.name, target):
        return
    name = connector.name
    yield Finding(
        switch_codes.SWITCH_BEGUN_ELSEWHERE, WARNING, name,
        f"{name} is STOPPED, and since it was stopped its config went from offsets topic {origin} to {target}: a "
        "switch may have been cut off on another machine, where it can go on",
        f"Otherwise `{switch_command(name, target)}` shows whether {target} has all offsets that {origin} has, and "
        f"`eosctl connectors resume {arguments(name)}` starts it there; `{switch_command(name, origin)}` goes back.",
        {"origin": origin, "target": target},
    )  # fmt: skip


def _ended_here(app: App, cluster_id: str, connector: str, target: str) -> bool:
    """Check whether the newest switch on this machine has that target; a connector that was STOPPED stays so."""
    return newest_target(journal_of(app, "offsets-switch", connector, cluster_id=cluster_id)) == target


def _rescue(app: App, cluster_id: str, connector: ObservedConnector, state: ConnectorState) -> Iterator[Finding]:
    """Yield an unfinished rescue of the newest task set, while a task of it does not run or is still to be fenced."""
    journal = journal_of(app, "rescue", connector.name, cluster_id=cluster_id)
    begun = unfinished_rescue(journal, state)
    tasks = connector.tasks().values()
    if begun is None or not (state.pending_fencing or any(task != "RUNNING" for task in tasks)):
        return
    yield _finding(
        rescue_codes.RESCUE_UNFINISHED, connector.name,
        f"a rescue of {connector.name}, begun {rfc3339(begun.began_ms)}, is not over; done: "
        f"{', '.join(begun.done) or 'nothing'}",
        f"`eosctl rescue --connector {shell_word(connector.name)}` goes on.", journal.holder(),
    )  # fmt: skip


def _finding(code: Code, subject: str, message: str, fix: str, holder: str | None) -> Finding:
    """Make an error, or an info while an eosctl is at work on it."""
    if holder is None:
        return Finding(code, ERROR, subject, message, fix)
    return Finding(code, INFO, subject, f"{message}; eosctl is at work on it now ({holder})", "Wait for it.")
