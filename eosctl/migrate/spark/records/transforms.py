"""The migration's rule over columns: DataFrame in, DataFrame out, nothing read or written.

Says what `eosctl.core.offsets.decision` says for one key; a test compares the two on the same records. Every step ends
in a `select` that is its contract. Keys and values stay binary; a null value is a deletion, never a missing fact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone knows it by

from eosctl.core.offsets.decision import KeyAction, KeyMismatch, Policy
from eosctl.core.offsets.keys import quoted_name
from eosctl.core.offsets.migration import ConnectorRoute

NEWEST = (
    "topic string, partition int, offset long, timestamp_ms long, key binary, value binary, nothing boolean, "
    "connector string, name_start int, name_end int, places int"
)
"""Rows of `newest_per_key`; `places` is the number of partitions that the key was found on."""

DECISIONS = (
    "connector string, target_connector string, source_topic string, source_partition int, source_offset long, "
    "source_key binary, value binary, topic string, key binary, partitions int, partition int, "
    "target_exists boolean, target_offset long, target_timestamp_ms long, before binary, "
    "before_nothing boolean, action string, reason string, conflict boolean, claims long"
)
"""Rows of `decisions`, one per target key: `value` is the source's (null for a deletion), `before` the target's bytes,
`partition` where the target has it now (null: nowhere), `claims` how many source records wanted the key."""

STALE = "topic string, partition int, offset long, timestamp_ms long, key binary, value binary"
"""Rows of `stale`: older copies of keys that are written on another partition."""

MISMATCHES = (
    "side string, status string, connector string, topic string, partition int, key binary, expected binary, "
    "actual binary"
)
"""Rows of `target_mismatches` and `source_mismatches`."""


def newest_per_key(records: DataFrame) -> DataFrame:
    """The newest record of each topic and key, as NEWEST, from any number per key (`kafka_io.RECORDS`).

    Within a partition the offset says which is newest. Offsets of different partitions can't be compared: there the
    timestamp decides, then the place where Connect's producer puts the key, as in `offset_views.fold_store`. The hash
    makes sorting cheap; a collision of it is harmless.
    """
    key = ("hash", "topic", "key")
    of_key = Window.partitionBy(*key)
    across = of_key.orderBy(F.desc("timestamp_ms"), F.desc("at_home"), F.desc("offset"), F.desc("partition"))
    hashed = records.withColumn("hash", F.xxhash64("topic", "key")).repartition(*key)
    of_partitions = _first_rows(hashed, Window.partitionBy(*key, "partition").orderBy(F.desc("offset")))
    counted = of_partitions.withColumn("places", F.count(F.lit(1)).over(of_key).cast("int"))
    return _first_rows(counted, across).select(*_names(NEWEST))


def read_counts(newest: DataFrame, routes: Sequence[ConnectorRoute]) -> DataFrame:
    """One row that counts what was read (NEWEST), as `Tally.of` takes it: keys, nobodys, not_selected, scattered."""
    names = [(route.connector, True) for route in routes]
    selected = newest.sparkSession.createDataFrame(names, "connector string, selected boolean")
    is_somebodys, is_selected = F.col("connector").isNotNull(), F.col("selected").isNotNull()
    return newest.join(F.broadcast(selected), "connector", "left").agg(
        F.count(F.lit(1)).alias("keys"),
        F.count_if(~is_somebodys).alias("nobodys"),
        F.count_if(is_somebodys & ~is_selected).alias("not_selected"),
        F.count_if(F.col("places") > 1).alias("scattered"),
    )


def claims(newest: DataFrame, routes: Sequence[ConnectorRoute], *, sources: Sequence[str]) -> DataFrame:
    """The records of routed connectors with the topic and key that each ends on; `sources` in order of precedence.

    `value` is null for every deletion, however it was spelled: nothing else is ever sent for one.
    """
    rows = [
        (r.connector, r.target_connector, r.target_topic, bytearray(quoted_name(r.target_connector))) for r in routes
    ]
    schema = "connector string, target_connector string, target_topic string, quoted binary"
    table = newest.sparkSession.createDataFrame(rows, schema)
    renamed_key = F.expr(
        "concat(substring(key, 1, name_start), quoted, substring(key, name_end + 1, length(key) - name_end))"
    )
    return (
        newest.join(F.broadcast(table), "connector")
        .withColumn("value", _meaning("value", "nothing"))
        .withColumn("renamed", F.col("connector") != F.col("target_connector"))
        .withColumn("target_key", F.when(F.col("renamed"), renamed_key).otherwise(F.col("key")))
        .withColumn("precedence", F.array_position(F.array(*map(F.lit, sources)), F.col("topic")))
        .select(
            *("connector", "target_connector", "topic", "partition", "offset", "timestamp_ms", "key", "value"),
            *("target_topic", "target_key", "renamed", "precedence"),
        )
    )


def _meaning(value: str, nothing: str) -> Column:
    """`Cell.meaning`: the bytes that count, null for a deletion."""
    return F.when(~F.col(nothing), F.col(value))


def strongest(claims: DataFrame, policy: Policy) -> DataFrame:
    """One claim per target key (`decision.strongest`), with `collides` and the number of `claims` to it."""
    of_key = Window.partitionBy("hash", "target_topic", "target_key")
    strength = [*_rank(policy), F.asc("precedence"), F.desc("timestamp_ms"), F.desc("offset"), F.asc("partition")]
    hashed = claims.withColumn("hash", F.xxhash64("target_topic", "target_key"))
    weighed = hashed.withColumns({"collides": _collide(of_key), "claims": F.count(F.lit(1)).over(of_key)})
    return _first_rows(weighed, of_key.orderBy(*strength)).drop("hash")


def _rank(policy: Policy) -> list[Column]:
    if policy is Policy.NEWEST:
        return [F.desc("timestamp_ms"), F.asc("renamed")]
    return [F.desc("renamed") if policy is Policy.TAKE_SOURCE else F.asc("renamed")]


def _collide(of_key: WindowSpec) -> Column:
    """`decision.collide`: whether a rename brought two different values onto one key."""
    is_mixed = F.min("renamed").over(of_key) != F.max("renamed").over(of_key)
    return is_mixed & _values_differ(of_key)


def _values_differ(of_key: WindowSpec) -> Column:
    """Whether a key has two values, or a value and a deletion: min and max ignore nulls, which are deletions here."""
    values, rows = F.count("value").over(of_key), F.count(F.lit(1)).over(of_key)
    some_deleted = (values > 0) & (values < rows)
    return some_deleted | ~F.min("value").over(of_key).eqNullSafe(F.max("value").over(of_key))


def _first_rows(rows: DataFrame, order: WindowSpec) -> DataFrame:
    """The first row of each group of `order`."""
    return rows.withColumn("rank", F.row_number().over(order)).where("rank = 1").drop("rank")


def decisions(strongest: DataFrame, target: DataFrame, *, partitions: Mapping[str, int], policy: Policy) -> DataFrame:
    """What happens to each target key, as DECISIONS; `target` is NEWEST, `partitions` the size of each target topic."""
    sizes = strongest.sparkSession.createDataFrame(sorted(partitions.items()), "target_topic string, partitions int")
    there = target.select(
        F.col("topic").alias("target_topic"),
        F.col("key").alias("target_key"),
        F.col("partition").alias("there"),
        F.col("offset").alias("target_offset"),
        F.col("timestamp_ms").alias("target_timestamp_ms"),
        F.col("value").alias("before"),
        F.col("nothing").alias("before_nothing"),
        F.lit(True).alias("found"),
    )
    joined = (
        strongest.join(F.broadcast(sizes), "target_topic")
        .join(there, ["target_topic", "target_key"], "left")
        .withColumn("target_exists", F.coalesce("found", F.lit(False)))
    )
    differs = F.col("target_exists") & ~F.col("value").eqNullSafe(_meaning("before", "before_nothing"))
    action, reason = _action_and_reason(policy, differs)
    return joined.withColumns({"action": action, "reason": reason, "conflict": differs | F.col("collides")}).select(
        "connector",
        "target_connector",
        F.col("topic").alias("source_topic"),
        F.col("partition").alias("source_partition"),
        F.col("offset").alias("source_offset"),
        F.col("key").alias("source_key"),
        "value",
        F.col("target_topic").alias("topic"),
        F.col("target_key").alias("key"),
        "partitions",
        F.col("there").alias("partition"),
        *("target_exists", "target_offset", "target_timestamp_ms", "before", "before_nothing"),
        *("action", "reason", "conflict", "claims"),
    )


def _action_and_reason(policy: Policy, differs: Column) -> tuple[Column, Column]:
    """`decision.decide_claims` as two expressions that take their branches in the same order."""
    deleted, there = F.col("value").isNull(), F.col("target_exists")
    newer = F.col("timestamp_ms") > F.col("target_timestamp_ms")
    target_wins = {Policy.KEEP_TARGET: F.lit(True), Policy.NEWEST: ~newer}.get(policy, F.lit(False))
    undecided = F.lit(policy is Policy.FAIL)
    branches: list[tuple[Column, Column, str]] = [
        (undecided & F.col("collides"), F.lit(KeyAction.CONFLICT), "rename_collides"),
        (~there & deleted, F.lit(KeyAction.KEEP), "nothing_to_delete"),
        (~there, F.lit(KeyAction.WRITE), "missing"),
        (~differs, F.lit(KeyAction.KEEP), "equal"),
        (undecided, F.lit(KeyAction.CONFLICT), "undecided"),
        (target_wins, F.lit(KeyAction.KEEP), "conflict_kept"),
        (F.lit(True), F.when(deleted, KeyAction.DELETE).otherwise(KeyAction.WRITE), "source_taken"),
    ]
    action, reason = F.when(F.lit(False), None), F.when(F.lit(False), None)
    for condition, chosen, word in branches:
        action = action.when(condition, chosen)
        reason = reason.when(condition, F.lit(word))
    return action, reason


def sent(decisions: DataFrame) -> DataFrame:
    """The decisions that send a record."""
    return decisions.where(F.col("action").isin(KeyAction.WRITE, KeyAction.DELETE))


def to_write(decisions: DataFrame) -> DataFrame:
    """What is sent: topic (by its name on its cluster), partition, partitions, key, value.

    A key stays on the partition where the target has it.
    """
    topic = F.substring_index("topic", "@", 1).alias("topic")
    return sent(decisions).select(topic, "partition", "partitions", "key", "value")


def unwritten(decisions: DataFrame, target_now: DataFrame) -> DataFrame:
    """Those DECISIONS that send something which the target (NEWEST, read again) does not have yet."""
    now = target_now.select("topic", "key", _meaning("value", "nothing").alias("now"))
    joined = sent(decisions).join(now, ["topic", "key"], "left").where(~F.col("value").eqNullSafe(F.col("now")))
    return joined.select(*_names(DECISIONS))


def stale(target: DataFrame, decisions: DataFrame) -> DataFrame:
    """The live copies of keys that are sent, on other partitions than theirs, as STALE; `target` is RECORDS."""
    ours = sent(decisions).select("topic", "key", F.col("partition").alias("stays")).where("stays is not null")
    copies = target.where(~F.col("nothing")).join(ours, ["topic", "key"]).where("partition <> stays")
    return copies.select(*_names(STALE))


def without_cleaned(records: DataFrame, stale: DataFrame) -> DataFrame:
    """`records` (RECORDS, of the target) without the tombstones in places of `stale` (STALE): those are ours."""
    cleaned = stale.select("topic", "partition", "key").withColumn("nothing", F.lit(True))
    return records.join(cleaned, ["topic", "partition", "key", "nothing"], "left_anti")


def uncleaned(records: DataFrame, decisions: DataFrame, stale: DataFrame) -> DataFrame:
    """Copies of STALE that `records` (RECORDS, of the target, read again) still have, as MISMATCHES."""
    wanted = stale.select("topic", "partition", "key").join(
        decisions.select("topic", "key", "connector"), ["topic", "key"]
    )
    there = records.where(~F.col("nothing")).drop("connector").join(wanted, ["topic", "partition", "key"])
    return (
        there.withColumns(
            {
                "side": F.lit("target"),
                "status": F.lit(KeyMismatch.UNEXPECTED.value),
                "expected": F.lit(None).cast("binary"),
            }
        )
        .withColumn("actual", F.col("value"))
        .select(*_names(MISMATCHES))
    )


def foreign(records: DataFrame, decisions: DataFrame) -> DataFrame:
    """The rows of `records` (RECORDS, of the target) that are not what the decisions send."""
    ours = sent(decisions).select("topic", "key", F.col("value").alias("sent"))
    is_ours = (
        (F.col("records.topic") == F.col("ours.topic"))
        & (F.col("records.key") == F.col("ours.key"))
        & _meaning("records.value", "records.nothing").eqNullSafe(F.col("ours.sent"))
    )
    return records.alias("records").join(ours.alias("ours"), is_ours, "left_anti")


def target_mismatches(decisions: DataFrame, target_now: DataFrame) -> DataFrame:
    """Keys whose target (NEWEST, read again) is not as planned, as MISMATCHES; no record is as good as a tombstone."""
    is_sent = F.col("action").isin(KeyAction.WRITE, KeyAction.DELETE)
    wanted = decisions.withColumn(
        "expected", F.when(is_sent, F.col("value")).otherwise(_meaning("before", "before_nothing"))
    )
    wanted = wanted.select("connector", "topic", "key", "expected")
    return _mismatches(wanted, target_now, side="target")


def source_mismatches(decisions: DataFrame, source_now: DataFrame) -> DataFrame:
    """Keys whose source (NEWEST, read again) is no longer what was migrated, as MISMATCHES."""
    wanted = decisions.select(
        "connector",
        F.col("source_topic").alias("topic"),
        F.col("source_key").alias("key"),
        F.col("value").alias("expected"),
    )
    return _mismatches(wanted, source_now, side="source")


def _mismatches(wanted: DataFrame, now: DataFrame, *, side: str) -> DataFrame:
    actual = now.select(
        *("topic", "key", "partition"), _meaning("value", "nothing").alias("actual"), F.lit(True).alias("found")
    )
    status = (
        F.when(F.col("found").isNull(), KeyMismatch.MISSING.value)
        .when(F.col("actual").isNull(), KeyMismatch.DELETED.value)
        .when(F.col("expected").isNull(), KeyMismatch.UNEXPECTED.value)
        .otherwise(KeyMismatch.DIFFERS.value)
    )
    joined = wanted.join(actual, ["topic", "key"], "left").where(~F.col("expected").eqNullSafe(F.col("actual")))
    return joined.withColumn("side", F.lit(side)).withColumn("status", status).select(*_names(MISMATCHES))


def _names(schema: str) -> list[str]:
    return [column.strip().split(" ")[0] for column in schema.split(",")]
