"""`offsets log` and `offsets set --as-of`: the versions of a connector's offsets that the log still has. Reads only.

`offsets log` reports every version, and holds only these. `--as-of` finds the former version of each source partition,
and refuses versions that the log has lost.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from eosctl.app import App
from eosctl.connectors.dedicated import TOPIC_PROPERTY, DedicatedTopics, describe_unknown, gather_dedicated_topics
from eosctl.core.java.properties import whole_number
from eosctl.core.offsets.findings import missing_topic_finding
from eosctl.core.offsets.names import DEDICATED, GLOBAL
from eosctl.core.offsets.records import json_text, typed_partition
from eosctl.core.records import Bounds
from eosctl.core.wording import rfc3339
from eosctl.core.workers.config import creates_topics
from eosctl.deadline import Clock
from eosctl.errors import NotFoundError, RefusedError, UsageError
from eosctl.foreign import shell_word
from eosctl.offsets.history.events import ConnectorFilter, State, Version, version_at, versions
from eosctl.offsets.history.rows import OFFSETS_LOG, LoggedPartition, VersionsData, VersionsSummary, version_row
from eosctl.offsets.stores.gather import locate
from eosctl.offsets.stores.own import own_topics, refuse_unfit_sources
from eosctl.report import Problem, Report
from eosctl.state.history import since_ms


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


_MOST_NAMED = 10


class AsOf(Struct, frozen=True):
    """A moment or an offset of the log, one of both. No `partitions` (JSON) means all that the connector has.

    `store` is the log to read; None is the connector's own topic, and the global one for keys that it never had.
    """

    moment_ms: int | None
    log_offset: int | None
    partitions: tuple[str, ...] = ()
    store: str | None = None


def as_of(text: str, clock: Clock, partitions: Sequence[str] = (), *, store: str | None = None) -> AsOf:
    """Parse `--as-of`: a number is an offset of the log, anything else a time; raise UsageError."""
    offset = whole_number(text)
    if offset is not None:
        return AsOf(None, offset, tuple(partitions), store)
    return AsOf(since_ms(text, clock), None, tuple(partitions), store)


def former_versions(app: App, connector: str, wanted: AsOf) -> list[Version]:
    """Return a live version of each wanted source partition.

    Raises RefusedError for a version that the log does not have, and the errors of `read_logs`.
    """
    logs = read_logs(app, LogQuery(connector, wanted.partitions, wanted.store))
    if wanted.log_offset is not None:
        return [_at_offset(connector, logs, wanted.log_offset)]
    if not logs.versions():
        raise RefusedError(
            f"the log has no offset of {connector}; nothing was written", hint=f"{_show_log(connector)}."
        )
    moment_ms = wanted.moment_ms or 0
    found = [_at_moment(connector, same, moment_ms) for same in _by_source_partition(logs).values()]
    return [version for version in found if version is not None]


def _by_source_partition(logs: OffsetLogs) -> Mapping[str, list[list[Version]]]:
    """Group versions by the identity of their source partition and by topic, the connector's own topic first."""
    found: dict[str, list[list[Version]]] = {}
    for number, log in enumerate(logs.logs):
        for version in log.versions:
            found.setdefault(version.key.identity, [[] for _ in logs.logs])[number].append(version)
    return found


def _at_moment(connector: str, topics: Sequence[Sequence[Version]], moment_ms: int) -> Version | None:
    """Return the version that took effect at a moment; None if there was no offset then and is none now.

    Raises RefusedError if there is an offset now and was none then, or if the log does not have it.
    """
    then, now = _counting(topics, moment_ms), _counting(topics, sys.maxsize)
    if then is not None and not then.is_tombstone:
        return then
    if now is None or now.is_tombstone:
        return None
    shown, moment = json_text(now.key.partition), rfc3339(moment_ms)
    if then is not None:
        raise RefusedError(
            f"{shown} had no offset at {moment}: it was deleted at {rfc3339(then.record.timestamp_ms)}; nothing was "
            "written",
            hint=f"`eosctl offsets reset --connector {shell_word(connector)} --partition {shell_word(shown)}` deletes "
            "it; name the others with --partition.",
        )
    every = [version for versions in topics for version in versions if version.state is State.COMMITTED]
    oldest = _place(min(every, key=lambda version: version.record.timestamp_ms))
    raise RefusedError(
        f"the log has no offset of {shown} from {moment} or before: the oldest is {oldest}; nothing was written",
        hint=f"{_show_log(connector)}; name the source partitions that are meant with --partition.",
    )


def _counting(topics: Sequence[Sequence[Version]], moment_ms: int) -> Version | None:
    """Return the version that took effect at a moment: that of the first topic that had any."""
    return next(filter(None, (version_at(versions, moment_ms) for versions in topics)), None)


def _at_offset(connector: str, logs: OffsetLogs, offset: int) -> Version:
    """Return the one committed version at an offset of the log."""
    every = logs.versions()
    at_offset = [version for version in every if version.record.offset == offset]
    found = [version for version in at_offset if version.state is State.COMMITTED and not version.is_tombstone]
    if not found:
        why = f"the version there is {_state_text(at_offset[0])}" if at_offset else f"it has {_places(every)}"
        raise RefusedError(
            f"the log has no committed offset of {connector} at offset {offset}: {why}; nothing was written",
            hint=f"{_show_log(connector)}.",
        )
    if len({(version.key.identity, version.record.value) for version in found}) > 1:
        raise RefusedError(
            f"several source partitions or topics have a version at offset {offset}: {_places(found)}; nothing was "
            "written",
            hint="Say which one with --partition, and --from TOPIC.",
        )
    return found[0]


def _state_text(version: Version) -> str:
    return "a deletion" if version.is_tombstone else "not decided yet" if version.state is None else version.state.value


def _places(versions: Iterable[Version]) -> str:
    """Format the places of some versions, the newest last."""
    every = [version for version in versions if version.state is State.COMMITTED and not version.is_tombstone]
    more = f"{len(every) - _MOST_NAMED} older ones, " if len(every) > _MOST_NAMED else ""
    return more + ", ".join(_place(version) for version in every[-_MOST_NAMED:]) if every else "none"


def _place(version: Version) -> str:
    record = version.record
    return f"offset {record.offset} of {record.topic}-{record.partition} ({rfc3339(record.timestamp_ms)})"


def _show_log(connector: str) -> str:
    return f"`eosctl offsets log --connector {shell_word(connector)}` shows every version that there is"
