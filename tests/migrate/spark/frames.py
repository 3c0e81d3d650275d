"""Records as the batches and DataFrames that the stages of a migration work on."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from eosctl.core.records import Record
from eosctl.migrate.spark.records.kafka_io import ARROW_RECORDS, RECORDS, records_batch


def batch_of(records: Iterable[Record], *, partitions: int) -> pa.RecordBatch:
    """RECORDS of topics with so many partitions."""
    rows = list(records)
    if not rows:
        return pa.RecordBatch.from_pylist([], schema=ARROW_RECORDS)
    columns = zip(*(record[:6] for record in rows), strict=True)
    return records_batch(*columns, sizes=[partitions] * len(rows), versions=[1] * len(rows))


def frame_of(spark: SparkSession, records: Iterable[Record], *, partitions: int) -> DataFrame:
    """The same as a DataFrame."""
    rows = batch_of(records, partitions=partitions).to_pylist()
    return spark.createDataFrame([tuple(row.values()) for row in rows], RECORDS)
