"""The header of a snapshot: the first line of its record file, which says of what and of when the records are. Pure.

Readers of record files pass over it, so that `import`, `restore` and `diff` read a snapshot like any record file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import asdict

from eosctl.core.kept.plan_file import WrongMemberError, json_of, typed
from eosctl.core.records import HEADER, Bounds, is_header
from eosctl.errors import InputFileError

SNAPSHOT = "offsets-snapshot"
_FORMAT = 1
_BEGIN = f'{{"{HEADER}":'.encode()


class SnapshotTopic(Struct, frozen=True):
    """A topic of a snapshot; of each partition the records up to its LSO were read."""

    topic: Annotated[str, Meta(min_length=1)]
    topic_id: str
    partitions: tuple[Bounds, ...]

    def bounds(self) -> Mapping[int, Bounds]:
        """Return the bounds by partition."""
        return {bound.partition: bound for bound in self.partitions}


class SnapshotUnseen(Struct, frozen=True):
    """A part that the snapshot does not have, and why; `topic` is None where no topic is known."""

    code: str
    message: str
    topic: str | None = None


class SnapshotHeader(Struct, frozen=True):
    """The cluster and the group of a snapshot, the time when its bounds were read, its topics, and what it lacks.

    `connectors` are those whose records were kept, and `stores` the topics that were asked for; none: all.
    `offset_topic` is the group's global topic.
    """

    taken_ms: int
    kafka_cluster_id: str
    group_id: str | None
    topics: tuple[SnapshotTopic, ...]
    connectors: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    unseen: tuple[SnapshotUnseen, ...] = ()
    offset_topic: str | None = None
    format: int = _FORMAT

    def scope(self) -> tuple[object, ...]:
        """Return what a snapshot is of: those of one series have the same."""
        return self.kafka_cluster_id, self.group_id, self.offset_topic, self.connectors, self.stores

    def same_records(self, other: SnapshotHeader) -> bool:
        """Decide whether both hold the same records, and lack the same parts: nothing was committed in between."""
        mine, theirs = (
            {
                (topic.topic, topic.topic_id, one.partition, one.lso)
                for topic in header.topics
                for one in topic.partitions
            }
            for header in (self, other)
        )
        return self.scope() == other.scope() and mine == theirs and self.unseen == other.unseen

    def line(self) -> str:
        """Return the header as a line, without its line feed."""
        members = {name: value for name, value in asdict(self).items() if name != "topics"}
        topics = [{**asdict(topic), "partitions": list(map(asdict, topic.partitions))} for topic in self.topics]
        members |= {"unseen": list(map(asdict, self.unseen)), "topics": topics}
        return json.dumps({HEADER: SNAPSHOT, **members}, ensure_ascii=False, separators=(",", ":"))


def read_header(line: bytes, *, name: str) -> SnapshotHeader | None:
    """Read the header of a snapshot; return None for any other line. Raises InputFileError for one that is damaged."""
    if not line.startswith(_BEGIN):
        return None
    try:
        document = json_of(line)
        if not is_header(document) or not isinstance(document, dict) or document[HEADER] != SNAPSHOT:
            return None
        if document.get("format") != _FORMAT:
            raise InputFileError(
                f"{name} is a snapshot of format {document.get('format')}, and this eosctl reads {_FORMAT}",
                hint="Use the version of eosctl that wrote it, or a newer one.",
            )
        return typed({each: value for each, value in document.items() if each != HEADER}, SnapshotHeader)
    except (ValueError, WrongMemberError) as exc:
        raise InputFileError(f"{name}, line 1: the header of a snapshot is damaged: {exc}") from exc
