"""Without a shuffle, a migration decides, counts, samples and backs up what it does with one, from one snapshot."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from eosctl.core.offsets.decision import Policy
from eosctl.core.offsets.migration import ConnectorRoute, MigrationPlan, Parts, PlannedTopic, Tally
from eosctl.core.offsets.migration_results import DecidedKey
from eosctl.core.offsets.murmur2 import partition_for
from eosctl.core.records import Record
from eosctl.migrate.spark.job import MigrationJob
from eosctl.migrate.spark.records.parts import sample_of
from eosctl.migrate.spark.snapshots import land, parquet_files, part_file
from tests.migrate.spark.frames import batch_of

PARTITIONS = 5
PARTS: Parts = ((0, 2), (1, 4), (3,))
NOTHING = Tally(
    records=0, older=0, nobodys=0, not_selected=0, superseded=0, keys=0, conflicts=0, scattered=0, counts={}
)
VALUES = (b'{"at":1}', b'{"at":2}', b"{}", b"null", b"", None, b"\xff")


def keys() -> list[bytes]:
    names = (b"a", b"\xc3\xbc", b"other")
    good = [b'["%s",{"file":"%d"}]' % (name, number) for name in names for number in range(20)]
    return [*good, *(b'["a", {"file":"%d"}]' % number for number in range(20)), b"garbage", b"\xff", b'["a",null]']


def records(topic: str, seed: int, *, share: float) -> list[Record]:
    """One record for some of the keys, each where Connect's producer puts it."""
    rng = random.Random(seed)  # noqa: S311 - the same records every time
    chosen = [key for key in keys() if rng.random() < share]
    return [
        Record(topic, partition_for(key, PARTITIONS), offset, rng.randrange(4), key, rng.choice(VALUES))
        for offset, key in enumerate(chosen)
    ]


def land_parts(found: Iterable[Record], folder: Path) -> None:
    rows = list(found)
    folder.mkdir(parents=True)
    for number, part in enumerate(PARTS):
        batch = batch_of([row for row in rows if row.partition in part], partitions=PARTITIONS)
        assert land([batch] if batch.num_rows else [], part_file(folder, number)).in_place


def plan(policy: Policy, parts: Parts) -> MigrationPlan:
    source, target = PlannedTopic("source", "s", PARTITIONS, 1), PlannedTopic("target@p", "t", PARTITIONS, 1)
    routes = tuple(ConnectorRoute(name, name, "target@p") for name in ("a", "ü"))
    return MigrationPlan("cluster", None, policy, (source,), (target,), routes, NOTHING, "", parts=parts)


def outcome(job: MigrationJob, folder: Path, wanted: MigrationPlan) -> tuple[Tally, object, list[DecidedKey], object]:
    tally = job.decide(folder, wanted)
    decided = [row for file in parquet_files(folder / "decisions") for row in pq.read_table(file).to_pylist()]
    backup = [json.loads(line) for line in b"".join(job.backup(folder, wanted)).splitlines()]
    rows = sorted(decided, key=lambda row: row["key"])
    return tally, rows, job.sample(folder, limit=7), sorted(backup, key=lambda line: str(line["key"]))


@pytest.mark.spark
@pytest.mark.parametrize(
    ("policy", "share"),
    [*((policy, 0.7) for policy in Policy), pytest.param(Policy.FAIL, 0.0, id="fail-nothing there")],
)
def test_both_forms_are_one(spark: SparkSession, tmp_path: Path, policy: Policy, share: float) -> None:
    land_parts(records("source", 1, share=0.8), tmp_path / "source")
    land_parts(records("target@p", 2, share=share), tmp_path / "target")
    job = MigrationJob(spark.sparkContext, {})
    tally, rows, sample, backup = outcome(job, tmp_path, plan(policy, PARTS))
    assert (tally, rows, sample, backup) == outcome(job, tmp_path, plan(policy, ()))
    tally.check()
    assert tally.keys > 30
    assert len(sample) == 7


@pytest.mark.spark
def test_a_sample_is_of_what_changes_first(spark: SparkSession, tmp_path: Path) -> None:
    land_parts(records("source", 1, share=1.0), tmp_path / "source")
    land_parts(records("target@p", 2, share=0.7), tmp_path / "target")
    job, wanted = MigrationJob(spark.sparkContext, {}), plan(Policy.NEWEST, PARTS)
    tally = job.decide(tmp_path, wanted)
    shown: list[DecidedKey] = job.sample(tmp_path, limit=tally.to_write() + 2)
    assert [row.action == "keep" for row in shown] == [False] * tally.to_write() + [True] * 2
    assert [row.key for row in shown[:-2]] == sorted(row.key for row in shown[:-2])
    batches = list(sample_of(part_file(tmp_path / "decisions", 0), 3))
    assert sum(batch.num_rows for batch in batches) == 3


def test_a_snapshot_tells_what_it_holds(tmp_path: Path) -> None:
    home = records("source", 1, share=1.0)
    found = land([batch_of(home, partitions=PARTITIONS)], tmp_path / "a.parquet")
    assert (set(found.connectors), found.in_place) == ({"a", "ü", "other"}, True)
    astray = home[0]._replace(partition=(home[0].partition + 1) % PARTITIONS)
    assert not land([batch_of([*home, astray], partitions=PARTITIONS)], tmp_path / "b.parquet").in_place
    keyless = home[0]._replace(key=None)
    assert not land([batch_of([keyless], partitions=PARTITIONS)], tmp_path / "c.parquet").in_place
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["a.parquet", "b.parquet", "c.parquet"]


def test_a_task_that_dies_leaves_no_part(tmp_path: Path) -> None:
    def dying() -> Iterable[object]:
        yield batch_of(records("source", 1, share=1.0), partitions=PARTITIONS)
        raise OSError("killed")

    with pytest.raises(OSError, match="killed"):
        land(dying(), part_file(tmp_path, 0))
    assert not list(tmp_path.iterdir())
