"""The arithmetic and the tables behind the connector checks: pace, collisions, property names, aborted offsets."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from eosctl.core.ids import TransactionalId
from eosctl.core.offsets.findings import aborted_offsets
from eosctl.core.records import Bounds, Record, TopicRead
from eosctl.fence.connect import Pace, pace_of, pause_ms, round_s
from eosctl.group.observation.rules import our_ids, readings, rival_groups
from eosctl.observation.connectors.settings import idle_connector_names, idle_worker_names
from tests.group.observations import SOURCE, good

MS, MAX_MS = "retry.backoff.ms", "retry.backoff.max.ms"


def over(**values: str) -> dict[str, str]:
    names = {"ms": MS, "max_ms": MAX_MS}
    return {f"admin.override.{names[name]}": value for name, value in values.items()}


@pytest.mark.parametrize(
    ("config", "worker", "version", "pause"),
    [
        ({}, {}, None, 1000),
        ({}, {}, (4, 3), 1000),
        ({}, {}, (3, 6), 100),
        (over(ms="10", max_ms="10"), {}, (4, 3), 10),
        (over(ms="0"), {}, (4, 3), 0),
        (over(max_ms="100"), {}, (4, 3), 100),
        ({}, {f"admin.{MS}": "0", f"admin.{MAX_MS}": "0"}, (4, 3), 0),
        (over(max_ms="50"), {f"admin.{MAX_MS}": "10"}, (4, 3), 50),
        (over(max_ms="soon"), {}, (4, 3), 1000),
        (over(max_ms=" 400 "), {}, (4, 3), 400),  # Kafka trims
        (over(max_ms="+400"), {}, (4, 3), 400),
        (over(max_ms="-1"), {}, (4, 3), 1000),  # it takes none below 0
    ],
)
def test_the_pause_between_two_ids(
    config: dict[str, str], worker: dict[str, str], version: tuple[int, int] | None, pause: int
) -> None:
    assert pause_ms(config, worker, oldest_version=version) == pause


@pytest.mark.parametrize(
    ("ids", "pause", "workers", "pace"),
    [
        (1, 1000, 3, Pace.FINE),
        (9, 1000, 3, Pace.FINE),
        (10, 1000, 3, Pace.SLOW),
        (30, 1000, 3, Pace.SLOW),
        (31, 1000, 3, Pace.LOSSY),
        (31, 1000, 1, Pace.SLOW),
        (90, 1000, 1, Pace.SLOW),
        (91, 1000, 1, Pace.IMPOSSIBLE),
        (130, 10, 2, Pace.FINE),
        (10_000, 10, 2, Pace.IMPOSSIBLE),
    ],
)
def test_the_pace_of_a_round(ids: int, pause: int, workers: int, pace: Pace) -> None:
    assert pace_of(round_s(ids, pause), workers=workers) is pace


@pytest.mark.parametrize(
    ("transactional_id", "words"),
    [
        ("g-c-0", ["task 0 of connector c of group g"]),
        ("a-b-c-1", ["task 1 of connector b-c of group a", "task 1 of connector c of group a-b"]),
        (
            "connect-cluster-x-0",
            [
                "the leader of group x-0",
                "task 0 of connector cluster-x of group connect",
                "task 0 of connector x of group connect-cluster",
            ],
        ),
        ("connect-cluster-g", ["the leader of group g"]),
        ("connect-cluster-", []),
        ("g-c-00", []),
        ("g-c-", []),
        ("plain", []),
        ("-c-0", []),
        ("g--0", []),
    ],
)
def test_every_reading_of_an_id(transactional_id: TransactionalId, words: list[str]) -> None:
    assert [str(reading) for reading in readings(transactional_id)] == words


def test_only_groups_that_could_collide_are_asked_for() -> None:
    assert rival_groups("a-b", our_ids("a-b", [("c", 0), ("d-e", 1)])) == ["a", "a-b-d"]
    assert rival_groups("g", our_ids("g", [("c", 0)])) == []
    assert rival_groups("x-0", our_ids("x-0", [])) == ["connect", "connect-cluster"]


def test_names_that_do_nothing() -> None:
    good = ["exactly.once.support", "transaction.boundary", "transaction.boundary.interval.ms", "offsets.storage.topic"]
    assert list(idle_connector_names([*good, "tasks.max", "offset.flush.interval.ms"])) == []
    drafts = [
        *("atomic.source.offset.commit", "exactly.once.source.enabled", "exactly.once.enabled"),
        *("transaction.boundary.interval", "offsets.topic"),
    ]
    assert [name for name, _right in idle_connector_names(drafts)] == sorted(drafts)
    assert list(idle_worker_names(["exactly.once.source.support", "offset.storage.topic"])) == []
    assert dict(idle_worker_names(["transaction.boundary"])) == {"transaction.boundary": "a connector's property"}


KEY, OTHER = b'["c",{"f":1}]', b'["c",{"f":2}]'


def record(offset: int, value: bytes | None, key: bytes | None = KEY) -> Record:
    return Record("offsets", 0, offset, 0, key, value)


def read(*records: Record, lso: int = 10) -> TopicRead:
    return TopicRead("offsets", (Bounds(0, 0, lso, 10),), records, len(records))


@pytest.mark.parametrize(
    ("uncommitted", "committed", "repaired"),
    [
        (read(record(5, b"1")), read(record(5, b"1")), None),
        (read(record(5, b"2")), read(record(3, b"1")), "1"),
        (read(record(5, b"1")), read(record(3, b"1")), None),  # aborted, and says the same
        (read(record(5, b"2")), read(), "nothing"),  # only ever aborted
        (read(record(5, None)), read(record(3, b"1")), "1"),  # an aborted deletion
        (read(record(5, None)), read(), None),
        (read(record(5, b"2")), read(record(7, b"3")), None),  # came between the two reads
        (read(record(5, b"2")), read(record(3, b"1"), lso=5), None),  # still open: nobody knows yet
        (read(record(5, b"2", None)), read(), None),
        (read(record(5, b"2", OTHER)), read(record(3, b"1")), "nothing"),
    ],
)
def test_which_offsets_would_come_alive(uncommitted: TopicRead, committed: TopicRead, repaired: str | None) -> None:
    found = [each.repair() for each in aborted_offsets(uncommitted, committed)]
    key = uncommitted.records[0].key or b""
    value = None if repaired == "nothing" else repaired
    line = {"topic": "offsets", "partition": 0, "key": key.decode(), "value": value}
    assert found == ([] if repaired is None else [line])


@pytest.mark.parametrize(
    ("looked_ms", "written_ms", "age_ms"),
    [(1_000, 400, 600), (1_000, 0, 1_000), (400, 1_000, 0), (1_000, 1_000, 0), (None, 400, None), (1_000, -1, None)],
)
def test_how_old_a_task_set_is(looked_ms: int | None, written_ms: int, age_ms: int | None) -> None:
    """Of clocks that differ it is never younger than now; a record without a time has -1."""
    seen = replace(good(), looked_ms=looked_ms, task_sets_ms={"c": written_ms})
    assert (seen.task_set_age_ms("c"), seen.task_set_age_ms("another")) == (age_ms, None)


def test_which_connectors_can_not_be_changed_on_the_way_back() -> None:
    """Connect takes the value in any case (SourceConnectorConfig, Kafka 3.3 to 4.3)."""
    asked = {"a": "required", "b": "Required", "c": "requested", "d": "", "e": "required"}
    types = {"e": "sink"}
    connectors = [
        replace(SOURCE, name=name, type=types.get(name, "source"), config={"exactly.once.support": value})
        for name, value in asked.items()
    ]
    seen = replace(good(), connectors=(*connectors, replace(SOURCE, name="f", config={})))
    assert seen.requiring_exactly_once() == ["a", "b"]
