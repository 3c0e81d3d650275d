"""How much goes into one transaction of offset writes: all of it, unless that is very much.

Brokers end a transaction that is open for minutes, workers that read the topic to its end wait as long, and what one
transaction has is in memory here. The coordinator keeps the topics and partitions of a transaction in one record, which
may have 1 MiB (`max.message.bytes` of __transaction_state; TransactionLogValue, Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from eosctl.core.records import OutRecord

MOST_RECORDS, MOST_BYTES, MOST_PARTITION_BYTES = 200_000, 1 << 28, 1 << 19
_AROUND_RECORD, _AROUND_TOPIC, _OF_PARTITION = 100, 10, 4


def in_transactions(records: Iterable[OutRecord]) -> Iterator[list[OutRecord]]:
    """The records of one transaction after the other."""
    some, places, size, places_size = list[OutRecord](), set[object](), 0, 0
    for record in records:
        topic, key, value, partition, *_ = record
        more, more_places = _AROUND_RECORD + len(key or b"") + len(value or b""), 0
        if (topic, partition) not in places:
            more_places = _OF_PARTITION + (0 if topic in places else _AROUND_TOPIC + len(topic))
        is_full = len(some) == MOST_RECORDS or size + more > MOST_BYTES
        if some and (is_full or places_size + more_places > MOST_PARTITION_BYTES):
            yield some
            some, places, size = [], set(), 0
            places_size, more_places = 0, _OF_PARTITION + _AROUND_TOPIC + len(topic)
        if more_places:
            places |= {topic, (topic, partition)}
        some.append(record)
        size, places_size = size + more, places_size + more_places
    if some:
        yield some


def are_several(records: Iterable[OutRecord]) -> bool:
    """Whether the records go in more than one transaction."""
    return any(True for _second in islice(in_transactions(records), 1, 2))
