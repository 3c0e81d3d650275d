"""Offsets from and to files and a cluster that a profile names, on a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pyspark.sql import SparkSession

from eosctl.app import App
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.configs.records import Selection
from eosctl.core.offsets.migration import read_plan
from eosctl.core.offsets.names import partition_for
from eosctl.core.records import read_records
from eosctl.errors import ExitCode
from eosctl.migrate.plan import MigrationRequest
from eosctl.migrate.run import Engine, prepared_migration, verify_plan
from eosctl.migrate.spark.job import MigrationJob
from eosctl.report import Report
from eosctl.target import Target
from tests.migrate.spark.cluster import DOWN, PARTITIONS, Cluster, app

pytestmark = [pytest.mark.live, pytest.mark.spark]

KEYS = {
    b'["c%d",{"file":"\xc3\xbc%d"}]' % (number % 2, number): None if number == 9 else b'{"position":%d}' % number
    for number in range(200)
}
LIVE = {key: value for key, value in KEYS.items() if value is not None}


@pytest.fixture
def both(cluster: Cluster, tmp_path: Path) -> App:
    """An App that knows the same broker once more, as the profile `old`."""
    there = Target(client=ClientSettings(tuple(cluster.servers.split(","))), offset_topic=f"{cluster.name}-global")
    return replace(app(cluster, tmp_path), target_of=lambda profile: {"old": there}[profile])


@pytest.fixture
def stores(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> Engine:
    """The real stages, with the cluster of `old` in reach; the default client leads nowhere."""

    @contextmanager
    def opened() -> Iterator[Any]:
        yield MigrationJob(spark.sparkContext, None, others={"old": ClientSettings((cluster.servers,))})

    return Engine(tmp_path / "migrations", open_stages=opened)


def migrated(here: App, engine: Engine, sources: str, target: str) -> Report:
    wanted = MigrationRequest(sources=(sources,), target=target, selection=Selection(all_connectors=True))
    with prepared_migration(here, wanted, engine, allowances=DOWN) as prepared:
        assert prepared.apply is not None
        result = prepared.apply()
    assert (result.exit_code, result.problems) == (ExitCode.OK, ())
    assert result.summary.verified == len(KEYS)
    return result


def test_out_of_a_cluster_into_files_and_back(cluster: Cluster, both: App, stores: Engine, tmp_path: Path) -> None:
    cluster.create(f"{cluster.name}-global")
    cluster.write(f"{cluster.name}-global", KEYS.items())
    lines, parquet = tmp_path / "out.ndjson", tmp_path / "out.parquet"

    result = migrated(both, stores, "global@old", str(lines))
    assert (result.data.backup, result.data.undo) == (None, None), "a new file overwrites nothing"
    with lines.open("rb") as file:
        found = {record.key: (record.topic, record.partition, record.value) for record in read_records(file, name="x")}
    topic = f"{cluster.name}-global"
    assert found == {key: (topic, partition_for(key, PARTITIONS), value) for key, value in LIVE.items()}

    with lines.open("a") as file:  # a deletion of what no target has
        file.write(f'{{"topic":"{topic}","partition":0,"key":"[\\"c0\\",{{\\"file\\":\\"gone\\"}}]","value":null}}\n')
    _from_files(cluster, both, stores, lines, parquet)


def _from_files(cluster: Cluster, both: App, stores: Engine, lines: Path, parquet: Path) -> None:
    pattern = f"{cluster.name}-{{connector}}@old"
    result = migrated(both, stores, str(lines), pattern)
    assert str(result.data.undo).endswith("--profile old")
    assert result.summary.sent == len(LIVE)
    for connector in ("c0", "c1"):
        mine = {key: value for key, value in LIVE.items() if f'"{connector}"'.encode() in key}
        placed = {key: (partition_for(key, PARTITIONS), value) for key, value in mine.items()}
        assert cluster.committed(f"{cluster.name}-{connector}") == placed
    wanted = MigrationRequest(
        sources=(f"{cluster.name}-c0@old", f"{cluster.name}-c1@old"),
        target=str(parquet),
        selection=Selection(connectors=("c1",)),
        renames={"c1": "d"},
    )
    with prepared_migration(both, wanted, stores, allowances=DOWN) as prepared:
        assert prepared.apply is not None
        assert prepared.apply().exit_code is ExitCode.OK
    path = Path(str(prepared.report().data.plan_file))
    verified = verify_plan(both, read_plan(path.read_text(), path=str(path)), stores)
    assert (verified.exit_code, verified.summary["target_compared"]) == (ExitCode.OK, 99)
