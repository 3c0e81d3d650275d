"""The rows of `offsets log`: every version that the log still has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import UNSET, UnsetType

from eosctl.core.wording import encodable, json_bytes, rfc3339
from eosctl.offsets.history.events import State, Version
from eosctl.offsets.rows import Connector, Key, Lsns, SourcePartition, Value, cell_of, partition_json
from eosctl.offsets.snapshots.file import SnapshotFile
from eosctl.output.cells import summary_lines
from eosctl.output.rows import Header, Kind, Place, Printed, Text, Time
from eosctl.report import Report


class Jump(Printed):
    """The version before, which lies further on in the source."""

    offset: Annotated[int, "The offset of that record in its partition."]
    value: Annotated[object, "Its source offset."]


class VersionRow(Printed, kw_only=True):
    """A version of an offset that the log, or a snapshot, still has."""

    connector: Connector
    source_partition: SourcePartition
    key: Key
    topic: Annotated[str, "The topic of the record."]
    partition: Annotated[int, "Its partition."]
    offset: Annotated[int, "Its offset in the partition."]
    timestamp: Annotated[Time | None, "When it was written.", Header("TIME")]
    timestamp_ms: Annotated[int | None, "When it was written, in milliseconds since 1970."]
    value: Value
    lsn: Lsns | UnsetType | None = UNSET
    tombstone: Annotated[bool, "Whether it deletes the offset."]
    state: Annotated[
        State | None, "The state of the transaction that wrote it; null if it ended while the log was read."
    ]
    jumped_from: Annotated[Jump | None, "The version before it, if this one lies behind that."]
    file: Annotated[str, "The snapshot that has it, where the topic does not hold it any more."] | UnsetType = UNSET
    topic_id: Annotated[str, "The id of the former topic of this name that had it."] | UnsetType = UNSET

    def at(self) -> str:
        """Return `topic-partition@offset`."""
        return f"{self.topic}-{self.partition}@{self.offset}"

    @Header("VALUE")
    def shown(self) -> object:
        """Return the source offset; `deleted` for a tombstone."""
        return "deleted" if self.tombstone else self.value

    def jump(self) -> str | None:
        """Return the place of the version before, if this one lies behind it."""
        return None if self.jumped_from is None else f"back, from offset {self.jumped_from.offset}"


def version_row(version: Version) -> VersionRow:
    """Return a row of `offsets log`; `jumped_from` is the version before it that lies further on."""
    cell = cell_of(version.record)
    behind = None if version.behind is None else cell_of(version.behind)
    return VersionRow(
        connector=encodable(version.key.connector),
        source_partition=partition_json(version.key),
        key=json_bytes(version.key.raw),
        topic=cell.topic,
        partition=cell.partition,
        offset=cell.offset,
        timestamp=cell.timestamp,
        timestamp_ms=cell.timestamp_ms,
        value=cell.value,
        lsn=cell.lsn,
        tombstone=version.is_tombstone,
        state=version.state,
        jumped_from=None if behind is None else Jump(offset=behind.offset, value=behind.value),
        file=version.file or UNSET,
        topic_id=version.topic_id or UNSET,
    )


class VersionsSummary(Printed):
    """The numbers of versions."""

    source_partitions: Annotated[int, "Source partitions that the log has."]
    versions: Annotated[int, "Their versions."]
    jumps_back: Annotated[int, "Versions that lie behind the one before."]
    aborted: Annotated[int, "Versions of aborted transactions."]
    open: Annotated[int, "Versions of open transactions."]


class LoggedPartition(Place):
    """A partition that was read."""

    begin: Annotated[int, "Its first offset."]
    end: Annotated[int, "The offset behind its last record."]
    records: Annotated[int, "Records that it still has."]
    older_gone: Annotated[bool, "Whether records were certainly removed, and maybe older versions."]


class ReadSnapshot(Printed):
    """A snapshot that was read."""

    file: Annotated[str, "The file."]
    taken: Annotated[Time, "When its bounds were read."]
    taken_ms: Annotated[int, "The same in milliseconds since 1970."]


def read_snapshot_row(snapshot: SnapshotFile) -> ReadSnapshot:
    """Return a row of `data.snapshots`."""
    taken_ms = snapshot.header.taken_ms
    return ReadSnapshot(file=str(snapshot.path), taken=rfc3339(taken_ms) or "", taken_ms=taken_ms)


class VersionsData(Printed):
    """The topics, partitions and snapshots that were read."""

    topics: Annotated[list[str], "The topics that were read."]
    partitions: Annotated[list[LoggedPartition], "Their partitions."]
    snapshots: Annotated[list[ReadSnapshot], "The snapshots that were read, oldest first."] | UnsetType = UNSET


def _log_lines(report: Report) -> Iterator[str]:
    """Yield the partitions whose older versions may be gone, then the summary."""
    for partition in report.data_of(VersionsData).partitions:
        if partition.older_gone:
            place = f"{partition.cell()}, offsets {partition.begin} to {partition.end}"
            yield f"{place}: compacted, records left: {partition.records}; older versions may be gone"
    yield from summary_lines(report)


OFFSETS_LOG = Kind(
    "offsets-log",
    "Every version of a connector's offsets that the log, or a snapshot, still has.",
    row=VersionRow,
    summary=VersionsSummary,
    data=VersionsData,
    text=Text(
        columns=("source_partition", "at", "timestamp", "shown", "state", "jump?", "file?"),
        wide=("key", "lsn?", "topic_id?"),
        lines=_log_lines,
        empty="The log has no offset of this connector.",
    ),
)
