"""`eosctl offsets log` as typed: every version that the log has, what became of it, and which one went back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eosctl.core.records import OutRecord
from tests.conftest import Invoke, Outcome
from tests.fakes.offset_topics import GLOBAL, IN_OWN, OWN, OffsetWorld

FILE, OTHER = b'["c",{"filename":"/f"}]', b'["c",{"filename":"/other"}]'
RESPELLED = b'[ "c" , {"filename":"/\\u0066"} ]'
Run = Callable[..., Outcome]


def at(position: int) -> bytes:
    return f'{{"position":{position}}}'.encode()


@pytest.fixture
def world() -> OffsetWorld:
    """Connector c reads a file; its offset went back once, and an aborted transaction wrote one that never counted."""
    world = OffsetWorld()
    world.topics.add_topic(GLOBAL, 1)
    for position in (10, 40):
        world.topics.put(GLOBAL, FILE, at(position))
    world.topics.write_aborted([OutRecord(GLOBAL, FILE, at(50))])
    world.topics.put(GLOBAL, b'["cc",{"filename":"/f"}]', at(99))
    world.topics.put(GLOBAL, FILE, at(20))
    world.topics.put(GLOBAL, OTHER, at(7))
    world.connect.add("c", {"connector.class": "FileStreamSource"}, state="STOPPED")
    return world


@pytest.fixture
def run(world: OffsetWorld, invoke: Invoke) -> Run:
    def log(*words: str) -> Outcome:
        return invoke(*world.flags, "offsets", "log", "--connector", "c", *words, **world.surroundings)

    return log


def rows(done: Outcome) -> list[dict[str, Any]]:
    assert done.exit_code == 0, done.stderr
    found: list[dict[str, Any]] = done.json()["data"]["rows"]
    return found


def values(done: Outcome) -> list[tuple[Any, Any, Any]]:
    return [(row["value"]["position"], row["state"], row["jumped_from"]) for row in rows(done)]


def test_every_version_with_its_state_and_jumps_marked(run: Run, golden: Callable[[str, str], None]) -> None:
    """`offsets get` showed the last of them only; what stood there before needed a consumer and patience."""
    done = run("-o", "wide")
    assert (done.exit_code, done.stderr) == (0, "")
    golden("offsets-log.txt", done.stdout)


def test_versions_as_json(run: Run) -> None:
    document = run("-o", "json").json()
    assert values(run("-o", "json")) == [
        (10, "committed", None),
        (40, "committed", None),
        (50, "aborted", None),
        (20, "committed", {"offset": 1, "value": {"position": 40}}),
        (7, "committed", None),
    ]
    assert document["data"]["summary"] == {
        "source_partitions": 2, "versions": 5, "jumps_back": 1, "aborted": 1, "open": 0,
    }  # fmt: skip


def test_what_lies_behind_an_open_transaction_is_open(run: Run, world: OffsetWorld) -> None:
    world.topics.open_transaction(GLOBAL, 0)
    world.topics.put(GLOBAL, FILE, at(5))
    assert values(run("-o", "json"))[3:5] == [
        (20, "committed", {"offset": 1, "value": {"position": 40}}),
        (5, "open", None),
    ]


def test_a_deletion_in_between_is_no_jump(run: Run, world: OffsetWorld) -> None:
    """A reset is meant: whoever reads again from the beginning has not lost his place."""
    world.topics.put(GLOBAL, OTHER, None)
    world.topics.put(GLOBAL, OTHER, at(1))
    others = [row for row in rows(run("-o", "json")) if row["source_partition"] == {"filename": "/other"}]
    assert [(row["tombstone"], row["jumped_from"]) for row in others] == [(False, None), (True, None), (False, None)]
    assert "deleted" in run().stdout


def test_one_source_partition_in_any_spelling(run: Run, world: OffsetWorld) -> None:
    world.topics.put(GLOBAL, RESPELLED, at(30))
    found = rows(run("--partition", '{ "filename" : "/f" }', "-o", "json"))
    assert [row["value"]["position"] for row in found] == [30, 10, 40, 50, 20], "two spellings are two offsets"
    assert run("--partition", '{"filename":"/none"}').exit_code == 1
    assert run("--partition", "oops").exit_code == 2


def test_the_connectors_own_topic_comes_first_and_a_store_alone(run: Run, world: OffsetWorld) -> None:
    world.topics.add_topic(OWN, 1)
    world.topics.put(OWN, FILE, at(20))
    world.connect.connectors["c"].config.update(IN_OWN)
    assert {row["topic"]: 0 for row in rows(run("-o", "json"))} == {OWN: 0, GLOBAL: 0}
    assert rows(run("-o", "json"))[0]["topic"] == OWN
    for store, topic in (("dedicated", OWN), ("global", GLOBAL), (GLOBAL, GLOBAL)):
        assert {row["topic"] for row in rows(run("--store", store, "-o", "json"))} == {topic}


def test_a_topic_of_its_own_that_is_not_there_is_said(run: Run, world: OffsetWorld) -> None:
    world.connect.connectors["c"].config.update(IN_OWN)
    done = run("-o", "json").json()
    assert [each["code"] for each in done["errors"]] == ["topic_missing"]
    assert len(done["data"]["rows"]) == 5


def test_stores_and_connectors_that_are_none(run: Run, world: OffsetWorld, invoke: Invoke) -> None:
    assert run("--store", "dedicated").exit_code == 2
    assert run("--store", "nowhere").exit_code == 1
    unknown = invoke(*world.flags, "offsets", "log", "--connector", "nobody", **world.surroundings)
    assert (unknown.exit_code, "know a connector nobody" in unknown.stderr) == (1, True)


def test_where_older_versions_may_be_gone_is_said(run: Run, world: OffsetWorld) -> None:
    """The log looked complete after compaction, and what was asked for had never been there, it seemed."""
    assert "older versions may be gone" not in run().stdout
    log = world.topics.state.log(GLOBAL, 0)
    log.records[:] = log.records[-2:]
    assert f"{GLOBAL}-0, offsets 0 to " in run().stdout
    assert "compacted, records left: 2; older versions may be gone" in run().stdout
    assert run("-o", "json").json()["data"]["partitions"][0]["older_gone"] is True


def test_only_the_connectors_records_are_held(run: Run, world: OffsetWorld) -> None:
    """All records of a large topic in memory would take gigabytes."""
    for number in range(200):
        world.topics.put(GLOBAL, f'["d",{{"filename":"/{number}"}}]'.encode(), at(number))
    kept: list[int] = []
    read = world.topics.read

    def watched(*args: Any, **kwargs: Any) -> Any:
        answer = read(*args, **kwargs)
        kept.append(len(answer.records))
        return answer

    world.topics.read = watched  # type: ignore[method-assign]
    assert len(rows(run("-o", "json"))) == 5
    assert kept == [4, 5]


def test_gtids_that_went_back_are_a_jump(run: Run, world: OffsetWorld) -> None:
    """1,296 records were twice in Kafka after it, and the log said that nothing had jumped; `pos` says nothing."""
    for gtids, pos in (("0-4711-9", 900), ("0-4711-20", 4), ("0-4711-12", 1200)):
        value = f'{{"file":"bin.000003","pos":{pos},"gtids":"{gtids}"}}'.encode()
        world.topics.put(GLOBAL, b'["c",{"server":"s"}]', value)
    found = rows(run("--partition", '{"server":"s"}', "-o", "json"))
    assert [row["jumped_from"] is not None for row in found] == [False, False, True]
