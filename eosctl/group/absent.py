"""A Connect group without members: whether it ever existed, its config topic, and requests to a group's leader.

The workers of a group that is gone run nothing, and need no waiver; but a mistyped group looks the same to its
coordinator. So it is decided whether the group ever existed on this Kafka cluster.

The config topic is read with the records that an open transaction hides in it. Reads only.

The leader of a group is reached over its REST interface, with the signature that identifies a member to it.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connect.signing import signature_headers
from eosctl.core.configs.fold import fold_config_topic
from eosctl.core.ids import TransactionalId
from eosctl.core.open_transactions import OPEN_TRANSACTION
from eosctl.core.records import TopicRead
from eosctl.core.transactions import PROTOCOL_TYPE
from eosctl.core.wording import counted
from eosctl.core.workers.url import parse_worker_url
from eosctl.deadline import Deadline
from eosctl.errors import ConnectError, EosctlError, NotFoundError, RefusedError
from eosctl.group.belonging import connectors_of
from eosctl.group.gather import answering_url, read_group
from eosctl.group.listing import with_existing_groups
from eosctl.group.members import DEAD, EMPTY, ConnectGroup, connect_group
from eosctl.group.observation.absence import GroupEvidence, OtherGroup, Recorded, judge_absence
from eosctl.group.topics import ConfigTopic, find_config_topic
from eosctl.ports import ConnectWorker, TopicReader
from eosctl.report import Problem

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
    from eosctl.group.topics import find_config_topic  # rarely needed

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


def read_config_topic(app: App, store: TopicReader, *, isolation: str = "read_committed") -> ConfigTopic:
    """Read and fold the target's config topic; raise NotFoundError, or EosctlError if it can't be a config topic."""
    found = find_config_topic(app, store, isolation=isolation, strict=True)
    if found is None:
        require_ever_there(app)
        raise NotFoundError(
            f"there is no topic {app.target.config_topic}",
            hint="Name the worker's config.storage.topic with --config-topic, or give -w.",
        )
    return found


def read_both_views(app: App, store: TopicReader) -> tuple[ConfigTopic, ConfigTopic]:
    """Read the config topic as committed, and as a worker that takes aborted records sees it, up to the same offset.

    Both end where the first read ended: a record that came in between is neither aborted nor missing.
    Raises what `read_config_topic` raises.
    """
    committed = read_config_topic(app, store)
    ends = {bound.partition: bound.end for bound in committed.read.bounds}
    later = store.read(app.target.config_topic, isolation="read_uncommitted")
    records = tuple(record for record in later.records if record.offset < ends.get(record.partition, 0))
    same = records == tuple(committed.read.records)
    state = committed.state if same else fold_config_topic(records)
    return committed, replace(committed, read=replace(later, records=records), state=state)


def blocked_problems(read: TopicRead) -> list[Problem]:
    """Return a warning per partition where an open transaction hides later records."""
    return [
        Problem(
            OPEN_TRANSACTION,
            f"topic {read.topic}, partition {bound.partition}: a transaction is open since offset {bound.lso}; "
            f"{counted(bound.end - bound.lso, 'offset behind it is', 'offsets behind it are')} not visible",
            hint="If it stays open, workers hang on it too: see `eosctl txn hanging`.",
            unseen=True,
        ).as_warning()
        for bound in read.blocked()
    ]


_SESSION_KEY = b"session-key"


def leader_worker(app: App) -> ConnectWorker:
    """Return the leader's REST interface, as a follower would forward without the signature.

    Raises as `find_leader`, RefusedError where a worker of another Kafka cluster or group is at its address, and what
    asking it raises.
    """
    worker, cluster_id = find_leader(app)
    connectors_of(app, worker, cluster_id)
    return worker


def find_leader(app: App) -> tuple[ConnectWorker, str]:
    """Return what is at the leader's address, without asking it, and the group's Kafka cluster; raise ConnectError."""
    group, cluster_id = read_group(app)
    if group.leader_url is None:
        raise ConnectError(f"group {group.group_id} has no leader now", hint="A rebalance is going on; run again.")
    leader = parse_worker_url(group.leader_url).text
    given = {parse_worker_url(url).text: url for url in app.target.connect_urls}  # may carry credentials
    return app.worker(given.get(leader, leader)), cluster_id


def session_headers(app: App) -> dict[str, str]:
    """Return the headers that sign an empty body with the group's newest session key; return none without a key."""
    with app.topics() as store:
        records = store.read(app.target.config_topic, newest_per_key=True).records
    value = next((record.value for record in reversed(records) if record.key == _SESSION_KEY), None)
    if value is None:
        return {}
    try:
        return signature_headers(base64.b64decode(json.loads(value)["key"], validate=True))
    except (ValueError, KeyError, TypeError, RecursionError, binascii.Error) as exc:
        raise ConnectError(
            f"the session key in topic {app.target.config_topic} can't be read",
            hint="Is it the config topic of this group?",
        ) from exc
