"""Offsets of aborted transactions that would take effect: a worker that is not `enabled` reads the global topic as is.

`KafkaOffsetBackingStore` reads only committed records in `enabled` (Kafka 3.3 to 4.3). A task that starts from an
aborted offset skips source records: data loss. Compares two reads; reads nothing itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from eosctl.core.offsets.records import OffsetKey, decode_key
from eosctl.core.record_file import encode_bytes
from eosctl.core.records import Record, TopicRead


class AbortedOffset(Struct, frozen=True):
    """A key whose newest record was aborted; `committed` is the valid record, None if none was ever committed."""

    aborted: Record
    committed: Record | None

    @property
    def connector(self) -> str | None:
        """The connector of the offset; None for a key that is no offset key, and that no task reads."""
        key = decode_key(self.aborted.key)
        return key.connector if isinstance(key, OffsetKey) else None

    def repair(self) -> Mapping[str, object]:
        """Return the record to write once more: then it is the newest in both views.

        It is a line for `offsets import`.
        """
        value = None if self.committed is None else self.committed.value
        where = {"topic": self.aborted.topic, "partition": self.aborted.partition}
        return {**where, "key": encode_bytes(self.aborted.key), "value": encode_bytes(value)}


def aborted_offsets(uncommitted: TopicRead, committed: TopicRead) -> tuple[AbortedOffset, ...]:
    """Return the keys that a reader of aborted records holds differently.

    Both reads have the newest record per key, and `uncommitted` came first. In this order nothing that arrives in
    between looks aborted: a record below the later read's last stable offset is decided, and if it had been committed,
    the later read would have it or something newer.
    """
    decided = {bound.partition: bound.lso for bound in committed.bounds}
    counts = {(record.partition, record.key): record for record in committed.records}
    found = []
    for record in uncommitted.records:
        real = counts.get((record.partition, record.key))
        if record.key is None or record.offset >= decided.get(record.partition, 0):
            continue
        if real is None and record.value is None:
            continue  # a tombstone of a key without records, or with compacted ones
        if real is None or (real.offset < record.offset and real.value != record.value):
            found.append(AbortedOffset(record, real))
    return tuple(found)
