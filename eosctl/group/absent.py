"""Decides whether a Connect group without members ever existed on this Kafka cluster.

The workers of a group that is gone run nothing, and need no waiver; but a mistyped group looks the same to its
coordinator.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.ids import TransactionalId
from eosctl.core.transactions import PROTOCOL_TYPE
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, NotFoundError, RefusedError
from eosctl.group.gather import answering_url, read_group
from eosctl.group.listing import with_existing_groups
from eosctl.group.members import DEAD, EMPTY, ConnectGroup, connect_group
from eosctl.group.observation.absence import GroupEvidence, OtherGroup, Recorded, judge_absence

_ANSWER_S = 5.0


class KnownEvidence(Struct, frozen=True):
    """The evidence that the caller has read already; a field that is None is looked up.

    `may_be_new`: the group's workers may never have been started: it has no ids, and if no group has members on this
    cluster it needs no evidence. `ask_workers`: a named worker that answers belongs to the intended group, and counts;
    else only ids of the group count.
    """

    ids: Collection[TransactionalId] | None = None
    recorded: Recorded | None = None
    may_be_new: bool = False
    ask_workers: bool = True


NO_EVIDENCE = KnownEvidence()


def doubt_about(
    app: App, group: ConnectGroup, connectors: Collection[str] | None, known: KnownEvidence = NO_EVIDENCE
) -> str | None:
    """Return what `judge_absence` finds doubtful of a group without members, else None; raise NotFoundError as it does.

    The question is about `connectors`; None means all recorded ones. The error names the groups that exist.
    """
    if not _is_absent(group):
        return None
    missing = None
    if group.state == DEAD and not _evidence(app, connectors, known).has_ids(group.group_id):
        missing = _missing(_look_up(app, group, connectors, known), group, known, asked=connectors)
    return _judge(app, group, known, missing)


def _judge(app: App, group: ConnectGroup, known: KnownEvidence, missing: str | None) -> str | None:
    quick = replace(app, deadline=Deadline.after(min(_ANSWER_S, app.deadline.remaining_s() / 2), app.clock))
    answering = answering_url(quick) if known.ask_workers else None
    try:
        return judge_absence(group.group_id, state=group.state, answering=answering, missing=missing)
    except NotFoundError as error:
        raise with_existing_groups(app, error) from error


def require_ever_there(app: App, known: KnownEvidence = NO_EVIDENCE) -> None:
    """Raise NotFoundError if the named group has left no evidence: no member, no id, no connector.

    Called if nothing was found under the name. A source that can't be read is no evidence; a group that was not named
    is not checked.
    """
    if app.target.group_id is None or app.target.client is None:
        return
    try:
        group, _cluster_id = read_group(app, gone_ok=True, wait=False)
        if group.state == DEAD and app.target.connect_urls:  # its worker may be about to join
            group, _cluster_id = read_group(app, gone_ok=True)
        asked = _ask_sources(app, known) if group.state == DEAD else known
        if asked is not None:
            doubt_about(app, group, None, asked)
    except NotFoundError:
        raise
    except EosctlError:
        return


def _ask_sources(app: App, known: KnownEvidence) -> KnownEvidence | None:
    """Complete `known` from the coordinators and the config topic; return None if neither can be asked now.

    Restarted brokers answer for groups before they do for transactions and topics.
    """
    ids = _known_ids(app) if known.ids is None else known.ids
    try:
        recorded = _recorded(app) if known.recorded is None else known.recorded
    except EosctlError:
        return None if ids is None else replace(known, ids=ids)
    return replace(known, ids=ids, recorded=recorded)


def refuse_never_there(
    app: App, group: ConnectGroup, connectors: Collection[str], known: KnownEvidence = NO_EVIDENCE
) -> None:
    """Raise NotFoundError for a memberless group that never existed, RefusedError for one with an answering worker."""
    if not _is_absent(group):
        return
    evidence = _evidence(app, connectors, known)
    if evidence.has_ids(group.group_id) and not known.ask_workers:
        return
    evidence = _look_up(app, group, connectors, known)
    try:
        doubt = _judge(app, group, known, _missing(evidence, group, known, asked=connectors))
    except NotFoundError as error:
        raise NotFoundError(f"{error.message}; nothing was written", hint=error.hint) from error
    if doubt is not None and group.state == EMPTY:
        raise RefusedError(
            f"{doubt}; nothing was written",
            hint="Compare -g with group.id of the worker. One that has just started joins within a second.",
        )
    if (theirs := evidence.other_owner(group.group_id)) is not None:
        raise RefusedError(
            f"the group {group.group_id} has no member, and {theirs}; nothing was written",
            hint="Compare -g and --config-topic with group.id and config.storage.topic of the workers.",
        )


def _is_absent(group: ConnectGroup) -> bool:
    return group.state in (EMPTY, DEAD) and not group.members


def _evidence(app: App, connectors: Collection[str] | None, known: KnownEvidence) -> GroupEvidence:
    """Return the evidence that is known without asking."""
    files = {
        config.properties.source: config.group_id
        for config in app.target.worker_configs
        if config.group_id is not None and config.config_topic == app.target.config_topic
    }
    return GroupEvidence(connectors or (), known.ids, app.target.config_topic, known.recorded, files=files)


def _look_up(app: App, group: ConnectGroup, connectors: Collection[str] | None, known: KnownEvidence) -> GroupEvidence:
    """Return all available evidence; ask the members before reading the topic, which then has all that they read."""
    others = _other_groups(app, group.group_id)
    recorded = recorded_of(app) if known.recorded is None else known.recorded
    asked = connectors if connectors is not None else recorded.connectors if recorded else ()
    ids = known.ids
    if ids is None and not (known.may_be_new and group.state == EMPTY):  # it has none, and others may have their own
        ids = _known_ids(app)
    return replace(_evidence(app, asked, known), ids=ids, recorded=recorded, others=others)


def _missing(
    evidence: GroupEvidence, group: ConnectGroup, known: KnownEvidence, *, asked: Collection[str] | None
) -> str | None:
    none_runs = evidence.others == {} or (
        asked is None and evidence.others is None
    )  # for a reader, unknown counts as none
    is_new = known.may_be_new and none_runs and (asked is None or not evidence.recorded_connectors())
    return None if group.state == EMPTY or is_new else evidence.missing(group.group_id)


def _known_ids(app: App) -> list[TransactionalId] | None:
    try:
        with app.transactions() as admin:
            return [listing.transactional_id for listing in admin.list_transactions().complete()]
    except EosctlError:
        return None


def recorded_of(app: App) -> Recorded | None:
    """Read the connectors of the target's config topic; return None if it can't be read."""
    try:
        return _recorded(app)
    except EosctlError:
        return None


def _recorded(app: App) -> Recorded | None:
    """Read the connectors of the config topic; return None if there is none, raise if it can't be read."""
    from eosctl.group.topics.config_reader import find_config_topic  # rarely needed

    with app.topics() as store:
        found = find_config_topic(app, store)
    return None if found is None else Recorded.of(found.state, found.read)


def _other_groups(app: App, group_id: str) -> dict[str, OtherGroup] | None:
    """Return every other Connect group that has members, or None if that is unknown."""
    try:
        with app.transactions() as admin:
            names = [name for name, kind in admin.list_groups().items() if kind == PROTOCOL_TYPE and name != group_id]
            described = [admin.describe_group(name) for name in sorted(names)]  # meanwhile one may have been forgotten
            groups = [connect_group(raw) for raw in described if raw.members]
    except EosctlError:
        return None
    return {group.group_id: _other(group) for group in groups}


def _other(group: ConnectGroup) -> OtherGroup:
    held = frozenset(connector for member in group.members for connector, _task in member.held)
    offsets = [member.config_offset for member in group.members if member.config_offset is not None]
    return OtherGroup(held, max(offsets, default=None))
