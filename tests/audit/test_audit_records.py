"""`eosctl audit --unique` and `--sequence`: what only the records show."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from eosctl.core.records import ScanPlan, Window
from tests.audit.happenings import (
    codes,
    connector,
    honest,
    numbered,
)
from tests.audit.log_scene import OUT, LogScene, run_on
from tests.audit.test_source_partitions import SHARED
from tests.conftest import Invoke


def test_a_value_that_comes_twice_is_a_duplicate(invoke: Invoke) -> None:
    """Both came in good order, with their offsets: only the records show that the source was read twice."""
    scene = LogScene()
    numbered(scene, 1, 2, 2, 3)
    run = run_on(scene, invoke)
    assert run().exit_code == 0
    done = run("--unique", "id", "-o", "json")
    (row,) = done.json()["data"]["rows"]
    assert (row["code"], row["count"], row["first_offset"], done.exit_code) == ("duplicate", 1, 4, 3)
    assert row["message"] == "out-0, offset 4: 1 with a value that came before, the first 2"


def test_a_number_that_is_missing_is_a_gap(invoke: Invoke) -> None:
    scene = LogScene()
    numbered(scene, 1, 2, 5)
    done = run_on(scene, invoke)("--sequence", "id", "-o", "json")
    (row,) = done.json()["data"]["rows"]
    assert (row["code"], row["count"], row["message"]) == ("gap", 2, "out-0, offset 4: 2 missing before it, 3 to 4")


@pytest.mark.parametrize(
    ("config", "said", "unsaid"),
    [
        ({"errors.tolerance": "all"}, "errors.tolerance=all drops", "KAFKA-18073"),
        ({"errors.tolerance": "none"}, "KAFKA-18073", "tolerance=all"),
        ({"transforms": "f", "transforms.f.type": "com.acme.Own"}, "com.acme.Own may leave out", "tolerance=all"),
        ({"key.converter": "StringConverter", "value.converter": "StringConverter"}, "Numbers", "KAFKA-18073"),
    ],
)
def test_a_gap_names_what_in_the_config_drops_records(
    invoke: Invoke, config: dict[str, str], said: str, unsaid: str
) -> None:
    """errors.tolerance=all, which drops a source's records without a trace, was not named."""
    scene = LogScene(config=config)
    numbered(scene, 1, 2, 5)
    (row,) = run_on(scene, invoke)("--sequence", "id", "-o", "json").json()["data"]["rows"]
    assert row["code"] == "gap"
    assert said in row["fix"]
    assert unsaid not in row["fix"]


def test_a_duplicate_leads_to_what_else_was_found(invoke: Invoke) -> None:
    """A task of before wrote on beside the new one: that is why records are there twice."""
    scene = LogScene()
    zombie, heir = scene.task(1), scene.task(0)
    for task in (zombie, zombie, heir, zombie, heir, zombie):
        task.commit(b'{"id":1}', key=SHARED)
    rows = run_on(scene, invoke)("--unique", "id", "-o", "json").json()["data"]["rows"]
    shared = {row["code"] for row in rows} & {"source_partition_shared", "zombie_wrote"}
    [duplicate] = [row for row in rows if row["code"] == "duplicate"]
    assert shared
    assert all(code in duplicate["fix"] for code in shared)


def test_aborted_records_are_no_duplicates(invoke: Invoke) -> None:
    scene = LogScene()
    numbered(scene, 1, 2)
    task = scene.task()
    task.write(OUT, b"k", b'{"id":3}')
    task.end(commit=False)
    numbered(scene, 3)
    done = run_on(scene, invoke)("--unique", "id", "--sequence", "id", "-o", "json")
    assert (codes(done), done.exit_code) == ({"transaction_aborted"}, 0)


@pytest.mark.parametrize("words", [("--unique", "nothing"), ("--sequence", "nothing")])
def test_records_without_the_field_leave_it_unproven(invoke: Invoke, words: tuple[str, str]) -> None:
    """A typo in the field's name was exactly_once: no value came twice, as none was read."""
    scene = LogScene()
    numbered(scene, 1, 2)
    done = run_on(scene, invoke)("-o", "json", *words)
    assert (connector(done)["verdict"], done.exit_code) == ("unproven", 7)
    assert connector(done)["why"] == "Not proven: 2 of 2 records have no such field."
    assert [each["message"] for each in done.json()["errors"]] == ["2 of 2 records have no such field"]


def test_values_that_are_no_numbers_leave_it_unproven(invoke: Invoke) -> None:
    scene = LogScene()
    scene.task().commit(b"one", b"two")
    done = run_on(scene, invoke)("-o", "json", "--sequence", "value")
    assert (connector(done)["verdict"], done.exit_code) == ("unproven", 7)
    assert "2 records have no number at the end of the field" in connector(done)["why"]


def test_records_behind_an_open_transaction_leave_it_unproven(invoke: Invoke) -> None:
    """Consumers don't see them yet, so nobody knows their values; a warning was all that said so."""
    scene = LogScene()
    numbered(scene, 1, 2)
    scene.task(1).write(OUT, b"k", b'{"id": 9}')
    numbered(scene, 3, 3)
    run = run_on(scene, invoke)
    assert run().exit_code == 0
    done = run("-o", "json", "--unique", "id")
    assert (connector(done)["verdict"], done.exit_code) == ("unproven", 7)
    assert f"{OUT}-0 was read to offset 4, where an open transaction begins" in connector(done)["why"]


def test_a_topic_that_was_deleted_leaves_it_unproven(invoke: Invoke) -> None:
    """The connector wrote to it, and what, nobody can look up: it was exactly_once, with a line below `not seen`."""
    scene = LogScene()
    honest(scene)
    scene.connect.connectors["c"].topics.add("deleted")
    done = run_on(scene, invoke)("-o", "json")
    assert (connector(done)["verdict"], done.exit_code) == ("unproven", 7)
    assert connector(done)["why"] == "Not proven: topic deleted does not exist any more."
    assert connector(done)["window"]["unseen"] == ["topic deleted does not exist any more"]


def test_the_field_of_a_known_source_need_not_be_named(invoke: Invoke) -> None:
    scene = LogScene()
    scene.task().commit(b"line", b"line")
    run, config = run_on(scene, invoke), scene.connect.connectors["c"].config
    assert run("--unique", "auto").exit_code == 3, "lines of a file"
    config |= {"connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector", "incrementing.column.name": "id"}
    assert run("--unique", "auto").exit_code == 2
    config["mode"] = "incrementing"
    assert "have no such field" in run("--unique", "auto").stderr
    config["connector.class"] = "my.OwnSource"
    assert (run("--unique", "auto").exit_code, run("--unique", "header").exit_code) == (2, 2)


def test_a_row_that_was_updated_is_no_duplicate(invoke: Invoke) -> None:
    """JDBC with mode=timestamp+incrementing gives it again, by design."""
    config = {
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector", "mode": "timestamp+incrementing",
        "incrementing.column.name": "id", "timestamp.column.name": "at",
    }  # fmt: skip
    scene = LogScene(config=config)
    scene.task().commit(b'{"id":1,"at":1}', b'{"id":2,"at":2}', b'{"id":1,"at":3}')
    run = run_on(scene, invoke)
    done = run("-o", "json", "--unique", "auto")
    assert (codes(done), done.exit_code) == (set(), 0)
    assert connector(done)["values"] == ["--unique auto: value.id, value.at"]
    scene.task().commit(b'{"id":1,"at":3}')
    assert codes(run("-o", "json", "--unique", "auto")) == {"duplicate"}


def test_several_fields_may_be_unique_together(invoke: Invoke) -> None:
    scene = LogScene()
    scene.task().commit(b'{"a":1,"b":1}', b'{"a":1,"b":2}', b'{"a":1,"b":"2"}')
    run = run_on(scene, invoke)
    assert (run("--unique", "a,b").exit_code, run("--unique", "a").exit_code) == (0, 3)
    assert (run("--unique", "a, key").exit_code, run("--unique", "a,no").exit_code) == (3, 7)
    assert run("--unique", "a,").exit_code == 2


@pytest.mark.parametrize("option", ["--unique", "--sequence"])
def test_the_records_of_others_are_not_judged(invoke: Invoke, option: str) -> None:
    """Another connector with the same ids made duplicates of them all, and filled the gaps."""
    scene = LogScene()
    scene.connect.add("d", {"topic": OUT})
    numbered(scene, 1, 3)
    other = scene.task(0, "d")
    other.commit(b'{"id":1}', b'{"id":2}', key=b'["d",{}]')
    done = run_on(scene, invoke)("-o", "json", option, "id")
    found = {"gap"} if option == "--sequence" else set()
    assert (codes(done) - {"foreign_producer"}, done.exit_code) == (found, 3 if found else 0)


@pytest.mark.parametrize("option", ["--unique", "--sequence"])
def test_records_of_nobody_knows_whom_accuse_nobody_and_prove_nothing(invoke: Invoke, option: str) -> None:
    scene = LogScene()
    numbered(scene, 1, 3)
    application = scene.task()
    application.transactional_id = "my-application"
    application.start().commit(b'{"id":1}', b'{"id":2}', key=b"")
    done = run_on(scene, invoke)("-o", "json", option, "id")
    assert (codes(done) - {"foreign_producer"}, connector(done)["verdict"]) == (set(), "unproven")
    assert "2 records of producers that may be the connector's were not compared" in connector(done)["why"]


def two_partitions(scene: LogScene, *numbers: int) -> None:
    """Transactions of one number each: odd ones in partition 1."""
    task = scene.task()
    for number in numbers:
        task.write(OUT, b"k", b'{"id":%d}' % number, partition=number % 2)
        task.write(scene.offsets_topic, b'["c",{"task":"0"}]', b'{"n":1}')
        task.end()


@pytest.mark.parametrize(("lost", "found"), [((), set()), ((6,), {"gap"})])
def test_ends_that_were_looked_up_one_after_the_other_make_no_gap(
    invoke: Invoke, lost: tuple[int, ...], found: set[str]
) -> None:
    """What a live source writes between two lookups is in one partition, and not in the other."""
    scene = LogScene()
    two_partitions(scene, 1, 2, 3, 4)
    plan, plans = scene.batches.plan, list[ScanPlan]()

    def planning(topics: Collection[str], window: Window) -> ScanPlan:
        before = plan(topics, window)
        if plans or OUT not in topics:
            return before
        plans.append(before)
        two_partitions(scene, *(number for number in (5, 6, 7, 8) if number not in lost))
        after = plan(topics, window)
        spans = (old if old.partition == 0 else new for old, new in zip(before.spans, after.spans, strict=True))
        return ScanPlan(tuple(spans), before.unseen)

    scene.batches.plan = planning  # type: ignore[method-assign]
    done = run_on(scene, invoke)("-o", "json", "--sequence", "id")
    assert (codes(done), done.exit_code) == (found, 3 if found else 0)


def test_a_number_that_another_task_is_late_with_is_no_gap(invoke: Invoke) -> None:
    """Tasks that share one sequence write its numbers in any order: while the ends move it is looked at again."""
    scene = LogScene()
    two_partitions(scene, 1, 2, 4)
    plan, late = scene.batches.plan, [5, 6, 3]

    def planning(topics: Collection[str], window: Window) -> ScanPlan:
        found = plan(topics, window)
        if OUT in topics and late:
            two_partitions(scene, late.pop(0))
        return found

    scene.batches.plan = planning  # type: ignore[method-assign]
    done = run_on(scene, invoke)("-o", "json", "--sequence", "id")
    assert (codes(done), done.exit_code, late) == (set(), 0, [])


def test_a_partition_that_lost_its_beginning_makes_no_gap(invoke: Invoke) -> None:
    """Retention cuts partitions at different numbers."""
    scene = LogScene()
    two_partitions(scene, *range(1, 13))
    scene.state.log(OUT, 0).delete_before(6)
    done = run_on(scene, invoke)("-o", "json", "--sequence", "id")
    assert (codes(done), connector(done)["verdict"]) == (set(), "unproven")
    assert "3 numbers that are missing in out may lie where" in connector(done)["why"]


def test_a_gap_behind_the_lost_beginnings_is_one(invoke: Invoke) -> None:
    scene = LogScene()
    two_partitions(scene, *range(1, 9), 11, 12)
    scene.state.log(OUT, 0).delete_before(4)
    (row,) = run_on(scene, invoke)("-o", "json", "--sequence", "id").json()["data"]["rows"]
    assert (row["code"], row["count"]) == ("gap", 2)


def named(scene: LogScene, *names: str) -> None:
    """Transactions of one name each: those with a letter in front are in partition 0."""
    task = scene.task()
    for name in names:
        task.write(OUT, b"k", name.encode(), partition=int(name[0].isdigit()))
        task.write(scene.offsets_topic, b'["c",{"task":"0"}]', b'{"n":1}')
        task.end()


@pytest.mark.parametrize(
    ("names", "window", "found"),
    [
        (["a-1", "a-2", "a-3", "1", "2", "3", "5"], ("--since", "4"), {"gap"}),
        (["a-1", "a-2", "a-3", "3", "b4", "5"], ("--until", "6"), set()),
        (["a-1", "a-2", "a-3", "3", "5"], ("--until", "6"), {"gap"}),
    ],
)
def test_a_partition_without_a_number_is_read_on(
    invoke: Invoke, names: list[str], window: tuple[str, str], found: set[str]
) -> None:
    """What it has before and behind the window shows whether the missing number can be in it."""
    scene = LogScene()
    named(scene, *names)
    if "b4" in names:
        scene.state.log(OUT, 0).records[-1] = scene.state.log(OUT, 0).records[-1]._replace(value=b"4")
    done = run_on(scene, invoke)("-o", "json", "--sequence", "value", *window)
    assert (codes(done), done.exit_code) == (found, 3 if found else 0)


def test_compaction_hides_values(invoke: Invoke) -> None:
    """The first of two equal values was compacted away: nothing came twice, and that was exactly_once."""
    scene = LogScene()
    numbered(scene, 1, 1, 2)
    scene.state.log(OUT, 0).compact()
    done = run_on(scene, invoke)("-o", "json", "--unique", "id")
    assert (codes(done), connector(done)["verdict"]) == (set(), "unproven")


def change(number: int, op: str = "c") -> bytes:
    return b'{"before":null,"after":null,"op":"%s","source":{"file":"b.1","pos":%d,"row":0}}' % (op.encode(), number)


def test_changes_of_debezium_are_unique_by_their_position(invoke: Invoke) -> None:
    """Deletes, their tombstones and the schema changes had no such field: no table with a DELETE was ever proven."""
    scene = LogScene(config={"connector.class": "io.debezium.connector.mariadb.MariaDbConnector", "topic.prefix": "m"})
    scene.topics.add_topic("m", 1, {"cleanup.policy": "delete"})
    scene.connect.connectors["c"].topics.add("m")
    task = scene.task()
    task.commit(change(4), change(9))
    task.commit(b'{"ddl":"CREATE TABLE t"}', topic="m")
    task.write(OUT, b"k", change(14, "d"))
    task.write(OUT, b"k", None)
    task.write(scene.offsets_topic, b'["c",{"task":"0"}]', b'{"n":1}')
    task.end()
    run = run_on(scene, invoke)
    done = run("-o", "json", "--unique", "auto")
    assert (codes(done), done.exit_code) == (set(), 0)
    position = "source.gtid, source.file, source.pos, source.row and op of each change"
    assert connector(done)["values"] == [
        f"--unique auto: {position}; table and key of each snapshot row (1 tombstone passed over)",
        "left out: m (schema changes)",
    ]
    assert run("--unique", "source.file,source.pos,source.row,op").exit_code == 0
    task.commit(change(9))
    assert codes(run("-o", "json", "--unique", "auto")) == {"duplicate"}


def test_flattened_records_of_debezium_prove_nothing(invoke: Invoke) -> None:
    scene = LogScene(config={"connector.class": "io.debezium.connector.mysql.MySqlConnector", "topic.prefix": "m"})
    numbered(scene, 1, 1)
    done = run_on(scene, invoke)("-o", "json", "--unique", "auto")
    assert (codes(done), done.exit_code) == (set(), 7)


def test_a_window_without_any_value_proves_nothing(invoke: Invoke) -> None:
    scene = LogScene(config={"connector.class": "io.debezium.connector.mysql.MySqlConnector", "topic.prefix": OUT})
    scene.task().commit(b'{"ddl":"CREATE TABLE t"}')
    done = run_on(scene, invoke)("-o", "json", "--unique", "auto")
    assert (codes(done), done.exit_code) == (set(), 7)


@pytest.mark.parametrize(
    ("config", "words", "count"),
    [
        ({}, (), 0),
        ({"errors.tolerance": "all"}, (), 1),
        ({"errors.tolerance": "all"}, ("--sequence", "id"), 0),
        ({"errors.tolerance": "all"}, ("--unique", "id"), 1),
        ({"value.converter": "io.confluent.connect.avro.AvroConverter"}, (), 1),
        ({"transforms": "f", "transforms.f.type": "org.apache.kafka.connect.transforms.Filter"}, (), 1),
        ({"connector.class": "io.debezium.connector.mysql.MySqlConnector"}, (), 1),
        ({"connector.class": "io.debezium.connector.mysql.MySqlConnector"}, ("--unique", "id"), 0),
    ],
)
def test_what_no_log_shows_stands_beside_the_verdict(
    invoke: Invoke, config: dict[str, str], words: tuple[str, ...], count: int
) -> None:
    """exactly_once was all that was printed of a connector that may drop records before its producer."""
    scene = LogScene(config=config)
    numbered(scene, 1, 2, 3)
    done = run_on(scene, invoke)(*words, "-o", "json")
    [connector] = done.json()["data"]["connectors"]
    assert (done.exit_code, connector["verdict"]) == (0, "exactly_once")
    assert len(connector["not_covered"]) == count
    assert run_on(scene, invoke)(*words).stdout.count("\nnot covered: ") == count
