"""Whether a Connect group without members was ever on this Kafka cluster: one rule for all who ask.

The workers of a group that is gone run nothing, and need no waiver; a mistyped group looks the same to its coordinator.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from eosctl.core.absent_group import Traces, judge_absence
from eosctl.core.connect_group import DEAD, EMPTY, ConnectGroup, connect_group
from eosctl.core.group_protocol import PROTOCOL_TYPE
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, NotFoundError, RefusedError
from eosctl.ops.app import App
from eosctl.ops.workers import answering_url

_ANSWER_S = 5.0


@dataclass(frozen=True, slots=True)
class Known:
    """What the caller has read already of `Traces`; None is looked up.

    `may_be_new`: the group's workers may have never been started, so that it will do if no group has members on this
    cluster. `ask_workers`: a worker that was named and answers is of the group that is really meant, and matters.
    """

    ids: Collection[str] | None = None
    recorded: Collection[str] | None = None
    may_be_new: bool = False
    ask_workers: bool = True


NOTHING_KNOWN = Known()


def doubt_about(app: App, group: ConnectGroup, connectors: Collection[str], known: Known = NOTHING_KNOWN) -> str | None:
    """What `judge_absence` says of a group without members; None for one with members; raises NotFoundError."""
    if group.state not in (EMPTY, DEAD) or group.members:
        return None
    missing = None if group.state == EMPTY else _missing(app, group.group_id, connectors, known)
    quick = replace(app, deadline=Deadline.after(min(_ANSWER_S, app.deadline.remaining_s() / 2), app.clock))
    answering = answering_url(quick) if known.ask_workers else None
    return judge_absence(group.group_id, state=group.state, answering=answering, missing=missing)


def refuse_never_there(
    app: App, group: ConnectGroup, connectors: Collection[str], known: Known = NOTHING_KNOWN
) -> None:
    """Raises RefusedError for a group without members that was never there, or while a worker named for it answers."""
    try:
        doubt = doubt_about(app, group, connectors, known)
    except NotFoundError as error:
        raise RefusedError(f"{error.message}; nothing was written", hint=error.hint) from error
    if doubt is not None and group.state == EMPTY:
        raise RefusedError(
            f"{doubt}; nothing was written",
            hint="Compare -g with group.id of the worker. One that has just started joins within a second.",
        )


def _missing(app: App, group_id: str, connectors: Collection[str], known: Known) -> str | None:
    traces = Traces(connectors, known.ids, app.target.config_topic, known.recorded)
    if traces.has_ids(group_id):
        return None
    others = _other_groups(app, group_id)
    if known.may_be_new and others == {}:
        return None
    ids = _known_ids(app) if known.ids is None else known.ids
    recorded = recorded_connectors(app) if known.recorded is None else known.recorded
    return replace(traces, ids=ids, recorded=recorded, others=others).missing(group_id)


def _known_ids(app: App) -> list[str] | None:
    try:
        with app.transactions() as admin:
            return [listing.transactional_id for listing in admin.list_transactions().complete()]
    except EosctlError:
        return None


def recorded_connectors(app: App) -> frozenset[str] | None:
    """The connectors of the target's config topic; None where it is not to be read."""
    from eosctl.core.config_topic import fold_config_topic  # most commands meet no absent group

    topic = app.target.config_topic
    try:
        with app.topics() as store:
            if topic not in store.describe([topic]):
                return None
            return frozenset(fold_config_topic(store.read(topic).records).connectors)
    except EosctlError:
        return None


def _other_groups(app: App, group_id: str) -> dict[str, frozenset[str]] | None:
    """The connectors of each other Connect group that has members; None where that can't be told."""
    try:
        with app.transactions() as admin:
            names = [name for name, kind in admin.list_groups().items() if kind == PROTOCOL_TYPE and name != group_id]
            groups = [connect_group(admin.describe_group(name)) for name in sorted(names)]
    except EosctlError:
        return None
    return {
        group.group_id: frozenset(connector for member in group.members for connector, _task in member.held)
        for group in groups
        if group.members
    }
