"""The Spark job that a user would write: earliest to LSO, `groupBy(key).max_by`, write; nothing is tuned or checked.

It reads with the same consumer as eosctl and writes in one transaction per task, as confluent-kafka's examples do.
`python3 -m benchmarks.migrate.naive BOOTSTRAP SOURCE TARGET [PREFIX]`; the target is there already.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone knows it by

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.offsets.migration import in_bins
from eosctl.deadline import Deadline
from eosctl.engine.reading.ranges import OffsetRange
from eosctl.kafka.topics.runs import RunReading

_SCHEMA = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("key", pa.binary()), ("value", pa.binary())])


def main(bootstrap: str, source: str, target: str, prefix: str = "") -> None:
    """Copy the newest record of each key; `target` may have {connector}, `prefix` goes before connectors' names.

    With a prefix the target is read too, and only what differs is written.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    client = {"bootstrap.servers": bootstrap}
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    newest = newest_of(spark, client, source)
    if prefix:
        renamed = F.concat(F.lit(f'["{prefix}').cast("binary"), F.expr("substring(key, 3, length(key))"))
        there = newest_of(spark, client, target).withColumnRenamed("newest", "there")
        newest = newest.withColumn("key", renamed).join(there, "key", "left")
        newest = newest.where(~F.col("newest.value").eqNullSafe(F.col("there.value")))
    connector = F.regexp_extract(F.col("key").cast("string"), r'^\["([^"]*)"', 1)
    head, found, tail = target.partition("{connector}")
    topic = F.concat(F.lit(head), connector, F.lit(tail)) if found else F.lit(target)
    sizes = len(offset_ranges(client, target)) if not found else 1
    rows = newest.select(topic.alias("topic"), "key", "newest.value").mapInArrow(
        lambda batches: map(partial(placed, sizes), batches), "topic string, partition int, key binary, value binary"
    )

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        written = write_all(client, target, batches)
        yield pa.record_batch({"written": pa.array([written], pa.int64())})

    written = rows.repartition(2, "topic", "partition").mapInArrow(write, "written long").collect()
    print(sum(row.written for row in written), "records")
    spark.stop()


def newest_of(spark: SparkSession, client: dict[str, Any], topic: str) -> DataFrame:
    """Return the newest record of each key of a topic."""
    ranges = offset_ranges(client, topic)
    settings = ClientSettings((client["bootstrap.servers"],))
    bins = in_bins(((one.end - one.begin, one) for one in ranges), 2 * spark.sparkContext.defaultParallelism)

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = chain.from_iterable(batch.column(0).to_pylist() for batch in batches)
        for number in numbers:
            runs = RunReading(settings, bins[number], timeout=Deadline.after(60), limited=False)
            messages = chain.from_iterable(run for some in runs for _place, run in some)
            while some := list(islice(messages, 10_000)):
                yield as_batch(some)

    records = spark.range(0, len(bins), 1, len(bins)).mapInArrow(
        read, "partition int, offset long, key binary, value binary"
    )
    return records.groupBy("key").agg(F.max_by(F.struct("partition", "value"), "offset").alias("newest"))


def placed(partitions: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch of topic, key and value with the partition of each key."""
    from confluent_kafka import murmur2

    homes = [murmur2(key, partitions) for key in batch.column("key").to_pylist()]
    columns = [batch.column("topic"), pa.array(homes, pa.int32()), batch.column("key"), batch.column("value")]
    return pa.RecordBatch.from_arrays(columns, names=["topic", "partition", "key", "value"])


def write_all(client: dict[str, Any], name: str, batches: Iterable[pa.RecordBatch]) -> int:
    """Write all batches of topic, partition, key and value in one transaction; count every delivery."""
    from confluent_kafka import Producer  # its class can't be sent with the task

    task, failed, written = TaskContext.get(), list[Any](), 0

    def on_delivery(error: Any, _message: Any) -> None:
        nonlocal written
        if error is None:
            written += 1
        else:
            failed.append(error)

    assert task is not None
    more = {"transaction.timeout.ms": 600_000, "linger.ms": 20}  # a minute is not enough for ten million records
    producer = Producer({**client, **more, "transactional.id": f"naive-{name}-{task.partitionId()}"})
    producer.init_transactions()
    producer.begin_transaction()
    for batch in batches:
        for topic, partition, key, value in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            while True:
                try:
                    producer.produce(topic, value, key, partition, on_delivery)
                    break
                except BufferError:
                    producer.poll(0.5)
        producer.poll(0)
    producer.flush()
    if failed:
        raise RuntimeError(failed[0])
    producer.commit_transaction()
    return written


def offset_ranges(client: dict[str, Any], topic: str) -> list[OffsetRange]:
    """Return every partition from its begin to its last stable offset."""
    consumer = Consumer({**client, "group.id": "naive", "isolation.level": "read_committed"})
    try:
        partitions = sorted(consumer.list_topics(topic, 30).topics[topic].partitions)
        bounds = [(p, *consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=30)) for p in partitions]
        return [OffsetRange(topic, partition, begin, end, len(partitions)) for partition, begin, end in bounds]
    finally:
        consumer.close()


def as_batch(messages: Iterable[Any]) -> pa.RecordBatch:
    """Return messages as they come, every version of every key, as a batch."""
    rows = [(m.partition(), m.offset(), m.key(), m.value()) for m in messages]
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


if __name__ == "__main__":
    main(*sys.argv[1:])
