"""`offsets set --as-of`: the version of each source partition that counted at a time, or in a snapshot. Reads only.

A version that the topics and snapshots have lost is refused, and so is one after which another may have been lost.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.java.properties import whole_number
from eosctl.core.offsets.names import FILE_PREFIX, is_file
from eosctl.core.offsets.records import json_text
from eosctl.core.records import NO_TOPIC_ID
from eosctl.core.wording import rfc3339
from eosctl.deadline import Clock
from eosctl.errors import RefusedError
from eosctl.foreign import arguments, shell_word
from eosctl.offsets import codes
from eosctl.offsets.history.events import State, Version, version_at
from eosctl.offsets.history.log import LogQuery, OffsetLogs, TopicLog, read_logs
from eosctl.offsets.history.views import missed_since
from eosctl.offsets.snapshots.file import SnapshotFile, read_snapshot
from eosctl.report import Problem
from eosctl.state.history import since_ms

_MOST_NAMED = 10


class AsOf(Struct, frozen=True):
    """A moment, an offset of the log, or a snapshot, one of them. No `partitions` (JSON): all that the connector has.

    `store` is the log to read; None is the connector's own topic, and the global one for keys that it never had.
    `snapshots` is the folder of snapshots, or the one, to read beside the log.
    """

    moment_ms: int | None = None
    log_offset: int | None = None
    partitions: tuple[str, ...] = ()
    store: str | None = None
    snapshot: Path | None = None
    snapshots: Path | None = None


class FormerOffsets(Struct, frozen=True):
    """The versions to return to, and problems with what they are taken from."""

    versions: tuple[Version, ...] = ()
    problems: tuple[Problem, ...] = ()


def as_of(
    text: str,
    clock: Clock,
    partitions: Sequence[str] = (),
    *,
    store: str | None = None,
    snapshots: Path | None = None,
) -> AsOf:
    """Parse `--as-of`: a number is an offset of the log, a name of a file a snapshot, anything else a time.

    Raises UsageError.
    """
    wanted = AsOf(partitions=tuple(partitions), store=store, snapshots=snapshots)
    offset = whole_number(text)
    if offset is not None:
        return replace(wanted, log_offset=offset)
    if is_file(text):
        path = Path(text.removeprefix(FILE_PREFIX)).expanduser()
        return replace(wanted, snapshot=path, snapshots=path)
    return replace(wanted, moment_ms=since_ms(text, clock))


def former_versions(app: App, connector: str, wanted: AsOf) -> FormerOffsets:
    """Return a live version of each wanted source partition.

    Raises RefusedError for a version that neither the log nor a snapshot is known to have, InputFileError for a file
    that is no whole snapshot, and the errors of `read_logs`.
    """
    snapshot = None if wanted.snapshot is None else read_snapshot(wanted.snapshot)
    logs = read_logs(app, LogQuery(connector, wanted.partitions, wanted.store, wanted.snapshots))
    problems = [problem for problem in logs.problems if problem.code == codes.SNAPSHOT_UNREAD]
    if wanted.log_offset is not None:
        return FormerOffsets((_at_offset(connector, logs, wanted.log_offset),), tuple(problems))
    if not logs.versions():
        raise RefusedError(
            f"the log has no offset of {connector}; nothing was written", hint=f"{_show_log(connector)}."
        )
    if wanted.store is None:
        _refuse_other_topics(connector, logs, wanted.moment_ms)
    if snapshot is not None:
        moment_ms, shown = sys.maxsize, f"in {snapshot.path}"
        problems += _unseen_problems(snapshot, _require_topics(snapshot, logs, connector))
    else:
        moment_ms = wanted.moment_ms or 0
        shown = f"at {rfc3339(moment_ms)}"
    found = [
        _at_moment(connector, same, moment_ms, shown=shown, in_snapshot=snapshot is not None)
        for same in _by_source_partition(logs).values()
    ]
    return FormerOffsets(tuple(version for version in found if version is not None), tuple(problems))


def _refuse_other_topics(connector: str, logs: OffsetLogs, moment_ms: int | None) -> None:
    """Raise RefusedError if the connector used a topic then that it does not use now, as the snapshots of then show.

    Without a moment, these are all snapshots that were read: the one that was named.
    """
    times = [each.header.taken_ms for each in logs.snapshots]
    since_ms = 0 if moment_ms is None else max((each for each in times if each <= moment_ms), default=moment_ms)
    used = sorted({topic for taken_ms, topic in logs.others if taken_ms >= since_ms})
    if used:
        raise RefusedError(
            f"{connector} had offsets in topic {', '.join(used)} then, and does not use it now; nothing was written",
            hint=f"Name the topic that counted with --from: {', '.join([*used, *(log.topic for log in logs.logs)])}.",
        )


def _require_topics(snapshot: SnapshotFile, logs: OffsetLogs, connector: str) -> list[str]:
    """Return the topics of the logs; raise RefusedError for one that the snapshot does not have, or had as another."""
    kept = {topic.topic: topic for topic in snapshot.header.topics}
    missed = {each.topic for each in snapshot.header.unseen}
    for log in logs.logs:
        store = f"--store {shell_word(log.topic)} --connector {shell_word(connector)}"
        if log.views and all(view.topic_id is not None for view in log.views):
            former = "is of a former topic {topic}, which was created anew since"
            if log.views[0].topic_id == NO_TOPIC_ID:
                former = (
                    "may be of a former topic {topic}: these brokers do not report the ids of topics (Kafka 2.8), and "
                    "no record of it is in both"
                )
            raise RefusedError(
                f"{snapshot.path} {former.format(topic=log.topic)}; nothing was written",
                hint=f"`eosctl offsets import {store} {arguments(str(snapshot.path))}` writes it there.",
            )
        is_missed = snapshot.header.stores or not missed.isdisjoint({None, log.topic})
        if not log.views and (log.topic in kept or is_missed):
            raise RefusedError(
                f"{snapshot.path} does not have topic {log.topic}; nothing was written",
                hint="Name another snapshot, or with --from the topic that is meant.",
            )
    return [log.topic for log in logs.logs]


def _unseen_problems(snapshot: SnapshotFile, topics: Sequence[str]) -> list[Problem]:
    """Warn of what the snapshot lacks of these topics: its offsets may be older than those of its time."""
    return [
        Problem(codes.SNAPSHOT_INCOMPLETE, f"{snapshot.path}: {each.message}")
        for each in snapshot.header.unseen
        if each.topic in (None, *topics)
    ]


class _TopicVersions(Struct, frozen=True):
    """The versions of one source partition in one topic: those of the log and snapshots, without former topics."""

    log: TopicLog
    versions: tuple[Version, ...] = ()

    def only_in_snapshot(self) -> list[Version]:
        """Return the versions that the one snapshot has."""
        [view] = self.log.views or (None,)
        if view is None:
            return []
        return [each for each in self.versions if view.shows((each.key.raw, each.record.partition), each.record)]

    def may_have_had_one(self, moment_ms: int) -> bool:
        """Decide whether a version from before a moment, of a key with only newer ones, may have been compacted away.

        A source partition has several keys where they are spelled otherwise, or lie in several partitions.
        """
        committed = [each for each in self.versions if each.state is State.COMMITTED]
        places = {(each.key.raw, each.record.partition) for each in committed}
        older = {(each.key.raw, each.record.partition) for each in committed if each.record.timestamp_ms <= moment_ms}
        return any(
            not any(
                view.is_after(moment_ms, partition) and (raw, partition) not in view.newest for view in self.log.views
            )
            for raw, partition in places - older
            if self.log.may_lack_records(partition)
        )


def _by_source_partition(logs: OffsetLogs) -> Mapping[str, list[_TopicVersions]]:
    """Group versions by the identity of their source partition and by topic, the connector's own topic first."""
    found: dict[str, list[list[Version]]] = {}
    for number, log in enumerate(logs.logs):
        for version in log.versions:
            if version.topic_id is None:
                found.setdefault(version.key.identity, [[] for _ in logs.logs])[number].append(version)
    return {
        identity: [_TopicVersions(log, tuple(each)) for log, each in zip(logs.logs, topics, strict=True)]
        for identity, topics in found.items()
    }


def _at_moment(
    connector: str, topics: Sequence[_TopicVersions], moment_ms: int, *, shown: str, in_snapshot: bool
) -> Version | None:
    """Return the version that took effect at a moment, or in a snapshot; None if there was none and is none now.

    Raises RefusedError if there is an offset now and was none then, if neither the log nor a snapshot has it, or if a
    newer one of that time may be missing.
    """
    then = _counting([each.only_in_snapshot() if in_snapshot else each.versions for each in topics], moment_ms)
    present = [[version for version in each.versions if version.file is None] for each in topics]
    now = _counting(present, sys.maxsize)
    if then is not None and not in_snapshot:
        _refuse_missing(connector, topics, then, moment_ms)
    if then is not None and not then.is_tombstone:
        return then
    if now is None or now.is_tombstone:
        return None
    partition = json_text(now.key.partition)
    reset = f"eosctl offsets reset --connector {shell_word(connector)} --partition {shell_word(partition)}"
    if then is not None or in_snapshot:
        deleted = f": it was deleted at {rfc3339(then.record.timestamp_ms)}" if then is not None else ""
        raise RefusedError(
            f"{partition} had no offset {shown}{deleted}; nothing was written",
            hint=f"`{reset}` deletes it; name the others with --partition.",
        )
    every = [version for each in topics for version in each.versions if version.state is State.COMMITTED]
    oldest = _place(min(every, key=lambda version: version.record.timestamp_ms))
    raise RefusedError(
        f"the log has no offset of {partition} from {rfc3339(moment_ms)} or before: the oldest is {oldest}; nothing "
        "was written",
        hint=f"{_show_log(connector)}; name the source partitions that are meant with --partition.",
    )


def _refuse_missing(connector: str, topics: Sequence[_TopicVersions], then: Version, moment_ms: int) -> None:
    """Raise RefusedError if a version newer than `then` took effect at the moment and may have been compacted away.

    So may one in a topic that counts before that of `then`, or under another key in that topic, whose oldest version is
    of after the moment.
    """
    at = next(each for each in topics if then in each.versions)
    for before in topics[: topics.index(at)]:
        if before.may_have_had_one(moment_ms):
            raise RefusedError(
                f"the offset of {json_text(then.key.partition)} at {rfc3339(moment_ms)} is not known: topic "
                f"{before.log.topic} counts first, and may have had one that compaction removed; nothing was written",
                hint=f"{_show_log(connector)}; `--from {shell_word(at.log.topic)}` takes the one in that topic.",
            )
    if at.may_have_had_one(moment_ms):
        raise RefusedError(
            f"the offset of {json_text(then.key.partition)} at {rfc3339(moment_ms)} is not known: topic {at.log.topic} "
            "has it under several keys or partitions, and compaction may have removed a newer one than "
            f"{_place(then)}; nothing was written",
            hint=f"{_show_log(connector)}; `--as-of OFFSET` sets one of them.",
        )
    since = missed_since(at.versions, at.log.views, moment_ms)
    if since is None:
        return
    taken, moment = rfc3339(since.taken_ms), rfc3339(moment_ms)
    raise RefusedError(
        f"the offset of {json_text(then.key.partition)} at {moment} is not known: it is not older than {_place(then)}, "
        f"and versions between the snapshot of {taken} and {moment} may be missing; nothing was written",
        hint=f"`--as-of {arguments(since.file)}` sets what that snapshot has; {_show_log(connector)}.",
    )


def _counting(topics: Sequence[Sequence[Version]], moment_ms: int) -> Version | None:
    """Return the version that took effect at a moment: that of the first topic that had any."""
    return next(filter(None, (version_at(versions, moment_ms) for versions in topics)), None)


def _at_offset(connector: str, logs: OffsetLogs, offset: int) -> Version:
    """Return the one committed version at an offset of the log."""
    every = [version for version in logs.versions() if version.topic_id is None]
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
    of_file = f", in {version.file}" if version.file else ""
    return f"offset {record.offset} of {record.topic}-{record.partition} ({rfc3339(record.timestamp_ms)}{of_file})"


def _show_log(connector: str) -> str:
    return f"`eosctl offsets log --connector {shell_word(connector)}` shows every version that there is"
