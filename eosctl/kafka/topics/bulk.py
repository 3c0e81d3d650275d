"""Writes rows in bulk, in transactions that fit their timeout, even if a quota slows the writer down.

    counts = write_in_bulk(settings, "my-id-0", placed(rule.sent(decisions)))

Writing again under the same transactional id fences a transaction that was left open. This module knows nothing of
Spark, whose tasks call it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.core.records import Place
from eosctl.deadline import Clock, Deadline, Event
from eosctl.engine.columns import Table
from eosctl.engine.reading.ranges import ProgressMeter
from eosctl.engine.write import TRANSACTION_S, QuotaPace, by_partition, partitions_of
from eosctl.kafka.topics.writer import KafkaTopicWriter, OpenProducer, WriteTerms

Counts = dict[Place, tuple[int, int, int]]
"""(topic, partition) -> (records written, tombstones among them, offset of the last)."""

_TERMS = WriteTerms(TRANSACTION_S, TRANSACTION_S, 120.0)
"""A quota may hold a record up for as long as its transaction lasts, and a broker may be restarted meanwhile."""
_MANY = 1 << 31
"""More partitions than a topic can have: none is looked up."""


def write_in_bulk(
    settings: ClientSettings,
    transactional_id: TransactionalId,
    rows: Table,
    *,
    progress: ProgressMeter | None = None,
    open_producer: OpenProducer | None = None,
    clock: Clock | None = None,
) -> Counts:
    """Write `rows` (topic, partition, key, value), partition by partition, and return the committed counts.

    Without rows nothing is opened, and one transaction is enough where nothing delays the writer: see `QuotaPace`. The
    partitions exist: the plan has checked them. Raises the errors of `KafkaTopicWriter.write_rows`.
    """
    if not len(rows):
        return {}
    clock, written, tombstones = clock or Clock(), Counter[Place](), Counter[Place]()

    def transactions() -> Iterator[Sequence[Table]]:
        for some in QuotaPace(clock.monotonic_s).pieces(by_partition(rows)):
            yield [some]
            for place, each in partitions_of(some):  # they are committed by now
                written[place] += len(each)
                tombstones[place] += each["value"].null_count

    def tell(event: Event) -> None:
        if progress is not None and event.done is not None:
            progress.tell(lambda: event.done or 0, last=event.done == len(rows))

    writer = KafkaTopicWriter(
        settings, lambda _topic: _MANY,
        transactional_id=transactional_id, deadline=Deadline.after(TRANSACTION_S, clock), on_event=tell,
        terms=_TERMS, limited=False, open_producer=open_producer,
    )  # fmt: skip
    last = writer.write_rows(transactions(), total=len(rows))
    return {place: (count, tombstones[place], last[place]) for place, count in written.items()}
