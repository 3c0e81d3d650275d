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
from eosctl.ops.connect_groups import with_groups_there
from eosctl.ops.workers import answering_url, read_group

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


def doubt_about(
    app: App, group: ConnectGroup, connectors: Collection[str] | None, known: Known = NOTHING_KNOWN
) -> str | None:
    """What `judge_absence` says of a group without members; None for one with members; raises NotFoundError.

    It is asked for `connectors`; None means all that are recorded. The error names the groups that exist.
    """
    if group.state not in (EMPTY, DEAD) or group.members:
        return None
    missing = None if group.state == EMPTY else _missing(app, group.group_id, connectors, known)
    quick = replace(app, deadline=Deadline.after(min(_ANSWER_S, app.deadline.remaining_s() / 2), app.clock))
    answering = answering_url(quick) if known.ask_workers else None
    try:
        return judge_absence(group.group_id, state=group.state, answering=answering, missing=missing)
    except NotFoundError as error:
        raise with_groups_there(app, error) from error


def require_ever_there(app: App, known: Known = NOTHING_KNOWN) -> None:
    """Raises NotFoundError where a group was named of which nothing is known: no member, no id, no connector.

    For those who found nothing under it. What can't be asked is no evidence; neither is a group that was not named.
    """
    if app.target.group_id is None or app.target.client is None:
        return
    try:
        group, _cluster_id = read_group(app, gone_ok=True, wait=False)
        if group.state == DEAD and app.target.connect_urls:  # its worker may be about to join
            group, _cluster_id = read_group(app, gone_ok=True)
        doubt_about(app, group, None, known)
    except NotFoundError:
        raise
    except EosctlError:
        return


def refuse_never_there(
    app: App, group: ConnectGroup, connectors: Collection[str], known: Known = NOTHING_KNOWN
) -> None:
    """Raises NotFoundError for a group that was never there, RefusedError for one without members whose worker answers.

    Both say that nothing was written.
    """
    try:
        doubt = doubt_about(app, group, connectors, known)
    except NotFoundError as error:
        raise NotFoundError(f"{error.message}; nothing was written", hint=error.hint) from error
    if doubt is not None and group.state == EMPTY:
        raise RefusedError(
            f"{doubt}; nothing was written",
            hint="Compare -g with group.id of the worker. One that has just started joins within a second.",
        )


def _missing(app: App, group_id: str, connectors: Collection[str] | None, known: Known) -> str | None:
    traces = Traces(connectors or (), known.ids, app.target.config_topic, known.recorded)
    if traces.has_ids(group_id):
        return None
    others = _other_groups(app, group_id)
    if known.may_be_new and others == {}:
        return None
    ids = _known_ids(app) if known.ids is None else known.ids
    recorded = recorded_connectors(app) if known.recorded is None else known.recorded
    asked = recorded or () if connectors is None else connectors
    return replace(traces, connectors=asked, ids=ids, recorded=recorded, others=others).missing(group_id)


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
