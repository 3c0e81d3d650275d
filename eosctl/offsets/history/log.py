"""`offsets log`: the versions of a connector's offsets that the topics and snapshots still have. Reads only.

It holds only these, and reports each once, however many snapshots have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import UNSET, Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.connectors.dedicated import TOPIC_PROPERTY, DedicatedTopics, describe_unknown, gather_dedicated_topics
from eosctl.core.kept.snapshot_header import SnapshotTopic
from eosctl.core.offsets.findings import missing_topic_finding
from eosctl.core.offsets.names import DEDICATED, GLOBAL
from eosctl.core.offsets.records import OffsetKey, decode_key, is_nothing, typed_partition
from eosctl.core.records import NO_TOPIC_ID, Bounds, Record
from eosctl.core.workers.config import creates_topics
from eosctl.deadline import Event
from eosctl.errors import InputFileError, NotFoundError, RefusedError
from eosctl.foreign import shell_word
from eosctl.offsets.history.events import ConnectorFilter, State, Version, in_order, versions
from eosctl.offsets.history.rows import (
    OFFSETS_LOG,
    LoggedPartition,
    VersionsData,
    VersionsSummary,
    read_snapshot_row,
    version_row,
)
from eosctl.offsets.history.views import SnapshotView, by_certainty, with_views
from eosctl.offsets.snapshots.file import SnapshotFile, read_snapshot, require_of, snapshots_in, unread
from eosctl.offsets.stores.gather import locate
from eosctl.offsets.stores.own import own_topics, refuse_unfit_sources
from eosctl.report import Problem, Report


class LogQuery(Struct, frozen=True):
    """The connector, and the source partitions (JSON, in any spelling; none: all) whose versions to report.

    `store` is `global`, `dedicated`, TOPIC or TOPIC@PROFILE; None: the connector's own topic and the global one.
    `snapshots` is a folder of snapshots, or one of them, to read as well.
    """

    connector: str
    partitions: tuple[str, ...] = ()
    store: str | None = None
    snapshots: Path | None = None


class TopicLog(Struct, frozen=True):
    """The versions of a connector in one topic, and in the snapshots of it (`views`, oldest first).

    `counts` are all records of each partition of the log.
    """

    topic: str
    versions: tuple[Version, ...]
    bounds: tuple[Bounds, ...]
    counts: Mapping[int, int]
    views: tuple[SnapshotView, ...] = ()

    def partitions(self) -> list[LoggedPartition]:
        """Return `data.partitions`: where the versions lie, and whether older ones may be gone from there."""
        used = {version.record.partition for version in self.versions if version.topic_id is None}
        return [self._partition(bound) for bound in self.bounds if bound.partition in used]

    def may_lack_records(self, partition: int) -> bool:
        """Decide whether records may have been removed: not every offset is that of a record.

        The others may be those of transactions' markers, which no client sees.
        """
        return any(
            bound.begin > 0 or bound.end - bound.begin > self.counts.get(partition, 0)
            for bound in self.bounds
            if bound.partition == partition
        )

    def _partition(self, bound: Bounds) -> LoggedPartition:
        """Return the bounds and record count of a partition, and whether older versions may be gone.

        Every transaction has at least one record, and its marker takes one offset: more than two offsets per record
        prove that records were removed.
        """
        records = self.counts.get(bound.partition, 0)
        return LoggedPartition(
            topic=self.topic,
            partition=bound.partition,
            begin=bound.begin,
            end=bound.end,
            records=records,
            older_gone=bound.begin > 0 or bound.end - bound.begin > 2 * records,
        )


class OffsetLogs(Struct, frozen=True):
    """The logs of a connector's topics, its own before the global one, and problems with those that were not read.

    `snapshots` are those that were read, `others` the topics that had offsets of the connector when one was taken, and
    were not read.
    """

    logs: tuple[TopicLog, ...]
    cluster_id: str
    problems: tuple[Problem, ...] = ()
    snapshots: tuple[SnapshotFile, ...] = ()
    others: tuple[tuple[int, str], ...] = ()

    def versions(self) -> list[Version]:
        """Return the versions of all topics, topic by topic."""
        return [version for log in self.logs for version in log.versions]


@dataclass(slots=True)
class _LogSources:
    """App, topic and topic id of each store to read, and problems with those that are not read."""

    found: list[tuple[App, str, str]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def log_offsets(app: App, query: LogQuery) -> Report:
    """Report every version; exit 0 whatever is found. Raise the errors of `read_logs`."""
    read = read_logs(app, query)
    found = read.versions()
    states = Counter(version.state for version in found)
    return Report(
        kind=OFFSETS_LOG,
        rows=[version_row(version) for version in found],
        summary=VersionsSummary(
            source_partitions=len({version.key.identity for version in found}),
            versions=len(found),
            jumps_back=sum(version.behind is not None for version in found),
            aborted=states[State.ABORTED],
            open=states[State.OPEN],
        ),
        data=VersionsData(
            topics=[log.topic for log in read.logs],
            partitions=[p for log in read.logs for p in log.partitions()],
            snapshots=list(map(read_snapshot_row, read.snapshots)) or UNSET,
        ),
        target={"kafka_cluster_id": read.cluster_id, "group_id": app.target.group_id},
        problems=read.problems,
    )


def read_logs(app: App, query: LogQuery) -> OffsetLogs:
    """Read the topics; raise NotFoundError for a missing topic, or an unknown connector or source partition.

    Raises UsageError for an invalid store or a connector without the requested dedicated topic, RefusedError if that
    topic's name is unknown, and for a topic that holds no offsets.
    """
    wanted = {typed_partition(query.connector, text).identity for text in query.partitions}
    with app.topics() as topics:
        cluster_id = topics.cluster_id()
        dedicated = gather_dedicated_topics(app, topics)
    sources = _find_sources(app, query, dedicated)
    snapshots, kept = _read_snapshots(app, query, cluster_id, sources.problems)
    logs = []
    for topic_app, topic, topic_id in sources.found:
        log = _read(topic_app, topic, query.connector)
        # the snapshots are of the command's cluster: a topic elsewhere is another one
        logs.append(_with_snapshots(log, topic_id, kept) if topic_app is app else log)
    if not any(log.versions for log in logs):
        _require_connector(dedicated, query.connector)
    if wanted:
        logs = [_only(log, wanted) for log in logs]
        _require_partitions(query, logs)
    read_topics = {log.topic for log in logs}
    others = {
        (each.header.taken_ms, record.topic)
        for each, records in kept
        for record in records
        if record.topic not in read_topics and not is_nothing(record.value)
    }
    return OffsetLogs(tuple(logs), cluster_id, tuple(sources.problems), tuple(snapshots), tuple(sorted(others)))


def _find_sources(app: App, query: LogQuery, dedicated: DedicatedTopics) -> _LogSources:
    sources = _LogSources(problems=list(dedicated.problems))
    if query.store in (None, DEDICATED):
        _add_dedicated(app, query, dedicated, sources)
    if query.store != DEDICATED:
        store_app, name = locate(app, query.store or GLOBAL)
        topic = store_app.target.offset_topic if name == GLOBAL else name
        with store_app.topics() as topics:
            described = topics.describe([topic])
            if topic not in described:
                hint = "The global offsets topic is the worker's offset.storage.topic: name it with --offset-topic."
                raise NotFoundError(f"there is no topic {topic}", hint=hint)
            refuse_unfit_sources(store_app, topics, [topic])
        sources.found.append((store_app, topic, described[topic].topic_id))
    return sources


def _add_dedicated(app: App, query: LogQuery, dedicated: DedicatedTopics, sources: _LogSources) -> None:
    """Add the connector's own topic, wherever it is; report a problem if there is none that can be read."""
    connector = query.connector
    if connector in dedicated.unknown and query.store == DEDICATED:
        raise RefusedError(
            f"{describe_unknown(connector, dedicated.unknown[connector])}, so its own offsets are not known",
            hint=f"Put the topic's name itself into {TOPIC_PROPERTY}; it is no secret.",
        )
    if connector in dedicated.brokers:
        own, problems = own_topics(app, dedicated, [connector])
        sources.problems += problems
        candidates = [(own_topic.require_app(), own_topic.topic) for own_topic in own]
    else:
        topic = dedicated.of(connector)
        candidates = [] if topic is None else [(app, topic)]
        if topic is None and query.store == DEDICATED:
            dedicated.refuse_none(connector, hint="Name a topic: --store TOPIC.")
    for topic_app, topic in candidates:
        with topic_app.topics() as topics:
            if found := topics.describe([topic]):
                sources.found.append((topic_app, topic, found[topic].topic_id))
            else:
                created = creates_topics(worker.properties.values for worker in app.target.worker_configs)
                missing = missing_topic_finding(topic, [connector], topic_app.target.client, is_created=created)
                sources.problems.append(Problem(missing.code, missing.message, missing.fix).as_warning())


def _read(app: App, topic: str, connector: str) -> TopicLog:
    committed, everything = ConnectorFilter(connector), ConnectorFilter(connector)
    with app.topics() as topics:
        decided = topics.read(topic, keep=committed)
        whole = topics.read(topic, isolation="read_uncommitted", keep=everything)
    found = versions(decided, whole, {**committed.keys, **everything.keys})
    return TopicLog(topic, tuple(found), whole.bounds, everything.counts)


def _read_snapshots(
    app: App, query: LogQuery, cluster_id: str, problems: list[Problem]
) -> tuple[list[SnapshotFile], list[tuple[SnapshotFile, list[Record]]]]:
    """Read the connector's records in the snapshots of this cluster and group; add problems with those that can't be.

    Raises RefusedError for a file that was named and is of another cluster, group or connector.
    """
    if query.snapshots is None:
        return [], []
    if query.snapshots.is_file():
        files = [require_of(app, read_snapshot(query.snapshots), cluster_id, query.connector)]
    else:
        found, unreadable = snapshots_in(query.snapshots)
        problems += unreadable
        files = [
            each
            for each in found
            if each.is_of(cluster_id, app.target.group_id) and each.has_connector(query.connector)
        ]
    read, kept = list[SnapshotFile](), list[tuple[SnapshotFile, list[Record]]]()
    for number, each in enumerate(files, start=1):
        app.on_event(Event("reading snapshots", number, len(files), "files"))
        try:
            kept.append((each, each.records_of(query.connector)))
        except InputFileError as exc:
            if query.snapshots == each.path:
                raise
            problems.append(unread(exc))
        else:
            read.append(each)
    return read, kept


def _with_snapshots(log: TopicLog, topic_id: str, kept: Sequence[tuple[SnapshotFile, Sequence[Record]]]) -> TopicLog:
    """Add what snapshots have of a topic, and of former topics of its name."""
    present = {version.record for version in log.versions}
    views = []
    for each, records in kept:
        for topic in each.header.topics:
            if topic.topic == log.topic:
                # without ids, only a record that both have proves that it is the same topic
                known = topic_id != NO_TOPIC_ID or any(record in present for record in records)
                same = topic.topic_id == topic_id and known
                views.append(_view(each, topic, None if same else topic.topic_id, records))
    if not views:
        return log
    views = by_certainty(views, log.versions)
    return replace(log, versions=tuple(in_order(with_views(log.versions, views))), views=tuple(views))


def _view(file: SnapshotFile, topic: SnapshotTopic, topic_id: str | None, records: Sequence[Record]) -> SnapshotView:
    newest, keys = dict[tuple[bytes, int], Record](), dict[bytes, OffsetKey]()
    for record in records:
        key = decode_key(record.key)
        if record.topic == topic.topic and isinstance(key, OffsetKey):
            newest[key.raw, record.partition], keys[key.raw] = record, key
    return SnapshotView(str(file.path), file.header.taken_ms, topic_id, topic.bounds(), newest, keys)


def _only(log: TopicLog, wanted: set[str]) -> TopicLog:
    kept = tuple(version for version in log.versions if version.key.identity in wanted)
    return replace(log, versions=kept)


def _require_connector(dedicated: DedicatedTopics, connector: str) -> None:
    if connector not in (dedicated.connectors or ()):
        raise NotFoundError(
            f"neither Connect nor these offsets topics know a connector {connector}",
            hint="Names are case-sensitive; `eosctl offsets list` shows the connectors that have offsets.",
        )


def _require_partitions(query: LogQuery, logs: Sequence[TopicLog]) -> None:
    known = {version.key.identity for log in logs for version in log.versions}
    for text in query.partitions:
        if typed_partition(query.connector, text).identity not in known:
            raise NotFoundError(
                f"the log has no offset of {query.connector} for source partition {text}",
                hint=f"`eosctl offsets log --connector {shell_word(query.connector)}` shows all; numbers and texts are "
                "different.",
            )
