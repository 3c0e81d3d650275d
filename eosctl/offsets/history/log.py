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
from eosctl.offsets.history.events import ConnectorSieve, State, Version, versions
from eosctl.offsets.history.rows import OFFSETS_LOG, LoggedPartition, VersionsData, VersionsSummary, version_row
from eosctl.offsets.stores.gather import locate
from eosctl.offsets.stores.own import own_topics
from eosctl.offsets.stores.targets import refuse_unfit_sources
from eosctl.report import Problem, Report


class LogQuery(Struct, frozen=True):
    """Whose versions, and of which source partitions (JSON, in any spelling; none: of all).

    `store` is `global`, `dedicated`, TOPIC or TOPIC@PROFILE; None: the connector's own topic and the global one.
    """

    connector: str
    partitions: tuple[str, ...] = ()
    store: str | None = None


class TopicLog(Struct, frozen=True):
    """What the log of one topic has of a connector; `counts` are the records of each partition, whosever they are."""

    topic: str
    versions: tuple[Version, ...]
    bounds: tuple[Bounds, ...]
    counts: Mapping[int, int]

    def partitions(self) -> list[LoggedPartition]:
        """`data.partitions`: where the versions lie, and whether older ones may be gone from there."""
        used = {each.record.partition for each in self.versions}
        return [self._partition(bound) for bound in self.bounds if bound.partition in used]

    def _partition(self, bound: Bounds) -> LoggedPartition:
        """Every transaction has a record, and its marker one offset: more offsets than two a record were removed."""
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
    """The logs of a connector's topics, its own before the global one, and what could not be looked at."""

    logs: tuple[TopicLog, ...]
    cluster_id: str
    problems: tuple[Problem, ...] = ()

    def versions(self) -> list[Version]:
        """Those of all topics, topic by topic."""
        return [each for log in self.logs for each in log.versions]


@dataclass(slots=True)
class _Places:
    """App and topic of each store to read, and what there is to say of those that are not read."""

    found: list[tuple[App, str]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def log_offsets(app: App, query: LogQuery) -> Report:
    """Every version; exit 0 whatever is found. Raises what `read_logs` raises."""
    read = read_logs(app, query)
    found = read.versions()
    states = Counter(each.state for each in found)
    return Report(
        kind=OFFSETS_LOG,
        rows=[version_row(each) for each in found],
        summary=VersionsSummary(
            source_partitions=len({each.key.identity for each in found}),
            versions=len(found),
            jumps_back=sum(each.behind is not None for each in found),
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
    """Reads the topics; raises NotFoundError for a topic, a connector or a source partition that is not there.

    Raises UsageError for a store that is none, RefusedError for one that can't be known or holds no offsets.
    """
    wanted = {typed_partition(query.connector, each).identity for each in query.partitions}
    with app.topics() as topics:
        cluster_id = topics.cluster_id()
        dedicated = gather_dedicated_topics(app, topics)
    places = _places(app, query, dedicated)
    logs = [_read(there, topic, query.connector) for there, topic in places.found]
    if not any(log.versions for log in logs):
        _require_connector(dedicated, query.connector)
    if wanted:
        logs = [_only(log, wanted) for log in logs]
        _require_partitions(query, logs)
    return OffsetLogs(tuple(logs), cluster_id, tuple(places.problems))


def _places(app: App, query: LogQuery, dedicated: DedicatedTopics) -> _Places:
    places = _Places(problems=list(dedicated.problems))
    if query.store in (None, DEDICATED):
        _add_dedicated(app, query, dedicated, places)
    if query.store != DEDICATED:
        there, name = locate(app, query.store or GLOBAL)
        topic = there.target.offset_topic if name == GLOBAL else name
        with there.topics() as topics:
            if topic not in topics.describe([topic]):
                hint = "The global offsets topic is the worker's offset.storage.topic: name it with --offset-topic."
                raise NotFoundError(f"there is no topic {topic}", hint=hint)
            refuse_unfit_sources(there, topics, [topic])
        places.found.append((there, topic))
    return places


def _add_dedicated(app: App, query: LogQuery, dedicated: DedicatedTopics, places: _Places) -> None:
    """The connector's own topic, wherever it is; says so where there is none that can be read."""
    connector = query.connector
    if connector in dedicated.unknown and query.store == DEDICATED:
        raise RefusedError(
            f"{describe_unknown(connector, dedicated.unknown[connector])}, so its own offsets are not known",
            hint=f"Put the topic's name itself into {TOPIC_PROPERTY}; it is no secret.",
        )
    if connector in dedicated.brokers:
        own, told = own_topics(app, dedicated, [connector])
        places.problems += told
        candidates = [(place.there(), place.topic) for place in own]
    else:
        topic = dedicated.of(connector)
        candidates = [] if topic is None else [(app, topic)]
        if topic is None and query.store == DEDICATED:
            raise UsageError(
                f"connector {connector} has no offsets topic of its own (offsets.storage.topic)",
                hint="Name a topic: --store TOPIC.",
            )
    for there, topic in candidates:
        with there.topics() as topics:
            if topic in topics.describe([topic]):
                places.found.append((there, topic))
            else:
                created = creates_topics(worker.properties.values for worker in app.target.worker_configs)
                missing = missing_topic_finding(topic, [connector], there.target.client, is_created=created)
                places.problems.append(Problem(missing.code, missing.message, missing.fix).as_warning())


def _read(app: App, topic: str, connector: str) -> TopicLog:
    committed, everything = ConnectorSieve(connector), ConnectorSieve(connector)
    with app.topics() as topics:
        decided = topics.read(topic, keep=committed)
        whole = topics.read(topic, isolation="read_uncommitted", keep=everything)
    found = versions(decided, whole, {**committed.keys, **everything.keys})
    return TopicLog(topic, tuple(found), whole.bounds, everything.counts)


def _only(log: TopicLog, wanted: set[str]) -> TopicLog:
    kept = tuple(each for each in log.versions if each.key.identity in wanted)
    return TopicLog(log.topic, kept, log.bounds, log.counts)


def _require_connector(dedicated: DedicatedTopics, connector: str) -> None:
    if connector not in (dedicated.connectors or ()):
        raise NotFoundError(
            f"neither Connect nor these offsets topics know a connector {connector}",
            hint="Names are case-sensitive; `eosctl offsets list` shows the connectors that have offsets.",
        )


def _require_partitions(query: LogQuery, logs: Sequence[TopicLog]) -> None:
    there = {each.key.identity for log in logs for each in log.versions}
    for text in query.partitions:
        if typed_partition(query.connector, text).identity not in there:
            raise NotFoundError(
                f"the log has no offset of {query.connector} for source partition {text}",
                hint=f"`eosctl offsets log --connector {shell_word(query.connector)}` shows all; numbers and texts are "
                "different.",
            )
