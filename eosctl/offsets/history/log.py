"""`offsets log`: every version of a connector's offsets that the log still has; reads only, and holds only these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from eosctl.app import App
from eosctl.connectors.dedicated import TOPIC_PROPERTY, DedicatedTopics, describe_unknown, gather_dedicated_topics
from eosctl.core.offsets.findings import missing_topic_finding
from eosctl.core.offsets.names import DEDICATED, GLOBAL
from eosctl.core.offsets.typed import typed_partition
from eosctl.core.records import Bounds
from eosctl.core.workers.config import creates_topics
from eosctl.errors import NotFoundError, RefusedError, UsageError
from eosctl.foreign import shell_word
from eosctl.offsets.history.events import ConnectorFilter, State, Version, versions
from eosctl.offsets.history.rows import OFFSETS_LOG, LoggedPartition, VersionsData, VersionsSummary, version_row
from eosctl.offsets.stores.gather import locate
from eosctl.offsets.stores.own import own_topics
from eosctl.offsets.stores.targets import refuse_unfit_sources
from eosctl.report import Problem, Report


class LogQuery(Struct, frozen=True):
    """The connector, and the source partitions (JSON, in any spelling; none: all) whose versions to report.

    `store` is `global`, `dedicated`, TOPIC or TOPIC@PROFILE; None: the connector's own topic and the global one.
    """

    connector: str
    partitions: tuple[str, ...] = ()
    store: str | None = None


class TopicLog(Struct, frozen=True):
    """The versions of a connector in the log of one topic; `counts` are all records of each partition."""

    topic: str
    versions: tuple[Version, ...]
    bounds: tuple[Bounds, ...]
    counts: Mapping[int, int]

    def partitions(self) -> list[LoggedPartition]:
        """Return `data.partitions`: where the versions lie, and whether older ones may be gone from there."""
        used = {version.record.partition for version in self.versions}
        return [self._partition(bound) for bound in self.bounds if bound.partition in used]

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
    """The logs of a connector's topics, its own before the global one, and problems with those that were not read."""

    logs: tuple[TopicLog, ...]
    cluster_id: str
    problems: tuple[Problem, ...] = ()

    def versions(self) -> list[Version]:
        """Return the versions of all topics, topic by topic."""
        return [version for log in self.logs for version in log.versions]


@dataclass(slots=True)
class _LogSources:
    """App and topic of each store to read, and problems with those that are not read."""

    found: list[tuple[App, str]] = field(default_factory=list)
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
    logs = [_read(topic_app, topic, query.connector) for topic_app, topic in sources.found]
    if not any(log.versions for log in logs):
        _require_connector(dedicated, query.connector)
    if wanted:
        logs = [_only(log, wanted) for log in logs]
        _require_partitions(query, logs)
    return OffsetLogs(tuple(logs), cluster_id, tuple(sources.problems))


def _find_sources(app: App, query: LogQuery, dedicated: DedicatedTopics) -> _LogSources:
    sources = _LogSources(problems=list(dedicated.problems))
    if query.store in (None, DEDICATED):
        _add_dedicated(app, query, dedicated, sources)
    if query.store != DEDICATED:
        store_app, name = locate(app, query.store or GLOBAL)
        topic = store_app.target.offset_topic if name == GLOBAL else name
        with store_app.topics() as topics:
            if topic not in topics.describe([topic]):
                hint = "The global offsets topic is the worker's offset.storage.topic: name it with --offset-topic."
                raise NotFoundError(f"there is no topic {topic}", hint=hint)
            refuse_unfit_sources(store_app, topics, [topic])
        sources.found.append((store_app, topic))
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
            raise UsageError(
                f"connector {connector} has no offsets topic of its own (offsets.storage.topic)",
                hint="Name a topic: --store TOPIC.",
            )
    for topic_app, topic in candidates:
        with topic_app.topics() as topics:
            if topic in topics.describe([topic]):
                sources.found.append((topic_app, topic))
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


def _only(log: TopicLog, wanted: set[str]) -> TopicLog:
    kept = tuple(version for version in log.versions if version.key.identity in wanted)
    return TopicLog(log.topic, kept, log.bounds, log.counts)


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
