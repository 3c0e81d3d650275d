"""10,000 records through plan, apply and verify on a real broker, against a computation in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.configs.records import Selection
from eosctl.core.offsets.names import partition_for
from eosctl.core.offsets.views import Policy
from eosctl.core.records import read_records
from eosctl.deadline import Deadline
from eosctl.engine.backups.file import open_backup
from eosctl.engine.reading.newest import folded
from eosctl.engine.reading.ranges import OffsetRange
from eosctl.errors import DeadlineError, ExitCode
from eosctl.kafka.topics.pieces import read_pieces
from eosctl.migrate.plan import MigrationRequest
from eosctl.migrate.run import Engine, prepared_migration, verify_plan
from eosctl.migrate.spark.snapshots import RecordCounts
from eosctl.report import plain
from tests.migrate.spark.cluster import DOWN, PARTITIONS, Cluster, Line, app
from tests.sandbox_fixtures import PATIENCE_S, wait_until

pytestmark = pytest.mark.live

RECORDS = 10_000
"""As many as two tasks are worth."""
CONNECTORS = 10


def source_lines() -> Iterator[Line]:
    """Superseded keys, tombstones, odd spellings, bytes that are no key, and a connector that nobody selects."""
    spellings = (b'["c%d",{"file":"f%d"}]', b'["c%d", {"file": "f%d"}]', b'["c%d",{"f\xc3\xbc":%d}]')
    for number in range(RECORDS - 3):
        key = spellings[number % 3] % (number % CONNECTORS, number % 5_987)
        yield key, None if number % 11 == 0 else b'{"position":%d}' % number
    yield b"not a key", b"{}"
    yield b'["other",{"file":"x"}]', b"{}"
    yield b"\xff\xfe", None


def connector_of(key: bytes) -> str:
    return key.split(b'"')[1].decode()


def request(**changes: Any) -> MigrationRequest:
    wanted: dict[str, Any] = {
        "selection": Selection(pattern="c*"),
        "renames": {"c3": "moved"},
        "policy": Policy.NEWEST,
        **changes,
    }
    return MigrationRequest(**wanted)


@pytest.mark.spark
def test_ten_thousand_records(cluster: Cluster, engine: Engine, tmp_path: Path) -> None:
    cluster.create(cluster.name, f"{cluster.name}-c0")
    expected_old = {b'["c0",{"file":"stays"}]': b'{"position":1}', b'["c0",{"file":"f0"}]': b'{"position":-1}'}
    cluster.write(f"{cluster.name}-c0", expected_old.items())
    cluster.write(cluster.name, source_lines())
    wanted = request(dedicated_topic=f"{cluster.name}-{{connector}}")

    with prepared_migration(app(cluster, tmp_path), wanted, engine, allowances=DOWN) as prepared:
        assert prepared.apply is not None
        result = prepared.apply()
    assert (result.exit_code, result.problems) == (ExitCode.OK, ())

    newest = {key: value for key, value in dict(source_lines()).items() if key.startswith(b'["c')}
    expected = {key.replace(b'"c3"', b'"moved"', 1): value for key, value in newest.items()}
    by_topic: dict[str, dict[bytes, bytes | None]] = {}
    for key, value in expected.items():
        topic = f"{cluster.name}-{connector_of(key)}"
        by_topic.setdefault(topic, {})[key] = value
    assert len(by_topic) == CONNECTORS

    sent = {"write": 0, "delete": 0}
    for topic, keys in by_topic.items():
        old = expected_old if topic == f"{cluster.name}-c0" else {}
        live = {key: value for key, value in keys.items() if value is not None or key in old}
        found = cluster.committed(topic)
        assert {key: value for key, (_partition, value) in found.items()} == {**old, **live}
        assert all(partition == partition_for(key, PARTITIONS) for key, (partition, _value) in found.items())
        sent["write"] += sum(value is not None for value in live.values())
        sent["delete"] += sum(value is None for value in live.values())

    summary = plain(result.summary)
    assert sent["delete"] == 1, "the tombstone of a key that the target had"
    assert summary["counts"] == {**sent, "keep": len(expected) - sum(sent.values()), "conflict": 0}
    assert summary["records"] == RECORDS
    assert summary["unowned"] == 2
    assert summary["not_selected"] == 1
    assert summary["older"] == RECORDS - len(newest) - 3
    assert summary["keys"] == summary["verified"] == len(expected)
    assert summary["sent"] == sum(sent.values())

    backup = Path(str(result.data.backup))
    kept = list(read_records(b"".join(open_backup(backup).lines()).splitlines(), name="backup"))
    assert len(kept) == sum(sent.values())
    assert [(r.key, r.value) for r in kept if r.offset >= 0] == [(b'["c0",{"file":"f0"}]', b'{"position":-1}')]
    assert all(r.partition == partition_for(r.key or b"", PARTITIONS) for r in kept)

    _verify_and_tamper(cluster, engine, tmp_path, wanted, next(iter(expected)))


def _verify_and_tamper(cluster: Cluster, engine: Engine, tmp_path: Path, wanted: MigrationRequest, key: bytes) -> None:
    """A second run finds nothing to do; its plan verifies until one record is changed."""
    from eosctl.core.offsets.migration import read_plan

    with prepared_migration(app(cluster, tmp_path), wanted, engine, allowances=DOWN) as again:
        assert again.apply is None
    counts: Any = again.report().summary.counts
    assert plain(counts) == {"write": 0, "delete": 0, "keep": again.report().summary.keys, "conflict": 0}
    path = Path(str(again.report().data.plan_file))
    plan = read_plan(path.read_text(encoding="utf-8"), path=str(path))
    verified = verify_plan(app(cluster, tmp_path), plan, engine)
    assert (verified.exit_code, verified.rows) == (ExitCode.OK, [])

    topic = f"{cluster.name}-{connector_of(key)}"
    cluster.write(topic, [(key, b'{"position":"tampered"}')])
    verified = verify_plan(app(cluster, tmp_path), plan, engine)
    assert verified.exit_code is ExitCode.FINDINGS
    rows = [(row.side, row.key, row.actual) for row in verified.rows]
    assert rows == [("target", key.decode(), {"position": "tampered"})]


def test_reading_stops_at_the_end_that_was_fixed(cluster: Cluster, tmp_path: Path) -> None:
    """Markers, aborted records and what came later: none of it is read, none of it is waited for, or left to be."""
    cluster.create(cluster.name)
    settings = {"bootstrap.servers": cluster.servers, "transactional.id": cluster.name}
    producer = Producer(settings)
    producer.init_transactions(PATIENCE_S)
    steps: list[tuple[bytes, Callable[[], None]]] = [
        (b"committed", lambda: producer.commit_transaction(PATIENCE_S)),
        (b"aborted", lambda: producer.abort_transaction(PATIENCE_S)),
    ]
    for value, end in steps:
        producer.begin_transaction()
        producer.produce(cluster.name, value, b"k", partition=0)
        producer.flush(PATIENCE_S)
        end()
    wait_until(lambda: cluster.end(cluster.name) == 4, what="the marker, which is written after the abort was answered")
    cluster.write(cluster.name, [(b"k", b"later")], partitioner="consistent")
    with RecordCounts(tmp_path / "counts", 4) as counts:
        ranges = [OffsetRange(cluster.name, 0, 0, 4)]
        pieces = read_pieces(
            ClientSettings((cluster.servers,)),
            ranges,
            timeout=Deadline.after(PATIENCE_S),
            progress=counts.of_task(0),
        )
        (fold,) = folded((piece.columns for piece in pieces), ranges)
        assert counts.done() == 4
    assert (fold.records["value"].to_pylist(), fold.older) == ([b"committed"], 0)


def test_an_end_beyond_the_log_is_an_error_and_no_endless_wait(cluster: Cluster) -> None:
    cluster.create(cluster.name)
    ranges = [OffsetRange(cluster.name, 0, 0, 5)]
    with pytest.raises(DeadlineError, match=f"{cluster.name}-0: the log ends at offset 0 now"):
        list(read_pieces(ClientSettings((cluster.servers,)), ranges, timeout=Deadline.after(2)))
