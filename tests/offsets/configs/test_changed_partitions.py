"""What doctor says of a connector that left its source partitions behind, and of which it says nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from eosctl.core.configs.history import WrittenConfig, former_offsets_topics, written_configs
from eosctl.core.findings import Finding
from eosctl.core.offsets.names import partition_for
from eosctl.core.offsets.views import fold_store
from eosctl.core.records import Bounds, Record, TopicRead
from eosctl.offsets.configs.changed import changed_partitions
from eosctl.offsets.history.rules import OffsetHistory
from tests.conftest import Invoke
from tests.fakes.config_topic import config_records, created
from tests.fakes.doctor_scene import HEALTHY, OFFSETS, cluster, found

FILE = {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector"}
POSTGRES = {"connector.class": "io.debezium.connector.postgresql.PostgresConnector"}
JDBC = {"connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector", "mode": "incrementing"}
SPOOLDIR = {"connector.class": "com.github.jcustenborder.kafka.connect.spooldir.SpoolDirCsvSourceConnector"}
OWN = {"connector.class": "com.example.Source"}
CHANGED_MS = 1_000_000
A, B = {"filename": "a"}, {"filename": "b"}


def judge(
    *configs: Mapping[str, str], keys: Sequence[tuple[Mapping[str, object], int]], deleted: bool = False
) -> Finding | None:
    """Judge connector c: its configs come a second apart, the last at CHANGED_MS; `keys` are its commits."""
    first_ms = CHANGED_MS - 1000 * (len(configs) - 1)
    written = [WrittenConfig(each, first_ms + 1000 * at) for at, each in enumerate(configs)]
    records = tuple(
        Record(OFFSETS, 0, at, moment, json.dumps(["c", key]).encode(), None if deleted else b'{"position":1}')
        for at, (key, moment) in enumerate(keys)
    )
    history = OffsetHistory()
    history(records)
    read = TopicRead(OFFSETS, (Bounds(0, 0, len(records), len(records)),), records, len(records))
    return changed_partitions("c", written, fold_store(read), history)


BEFORE, AFTER = CHANGED_MS - 5000, CHANGED_MS + 90_000


def test_another_file_is_named_with_the_time_of_its_config() -> None:
    found = judge({**FILE, "file": "a"}, {**FILE, "file": "b"}, keys=[(A, BEFORE), (B, AFTER)])
    assert found is not None
    assert (found.code, found.severity, found.subject) == ("source_partitions_changed", "warning", "c")
    assert found.evidence["left_behind"] == [A]
    assert found.evidence["source_partitions"] == [B]
    assert found.evidence["properties"] == ["file"]
    assert found.evidence["since"] == "1970-01-01T00:16:40.000Z"


def test_it_is_known_before_the_first_commit_and_after_other_changes() -> None:
    before, after = {**FILE, "file": "a"}, {**FILE, "file": "b"}
    assert judge(before, after, keys=[(A, BEFORE)]) is not None
    found = judge(before, after, {**after, "tasks.max": "2"}, keys=[(A, BEFORE), (B, AFTER)])
    assert found is not None
    assert found.evidence["since"] == "1970-01-01T00:16:39.000Z"  # of the config that changed the file


@pytest.mark.parametrize(
    ("before", "after", "keys"),
    [
        ({**FILE, "file": "a"}, {**FILE, "file": "a", "tasks.max": "2"}, [(A, BEFORE)]),
        ({**FILE, "file": "a"}, {**FILE, "file": "b"}, [(A, AFTER)]),  # a task goes on with the former config
        ({**FILE, "file": "a"}, {**FILE, "file": "b"}, [(B, AFTER)]),
        ({**FILE, "file": "x"}, {**FILE, "file": "b"}, [(A, BEFORE), (B, AFTER)]),  # of another time
        ({**FILE, "file": "a"}, {**FILE, "file": "${file:/x:y}"}, [(A, BEFORE), (B, AFTER)]),
        ({**FILE, "file": "${file:/x:y}"}, {**FILE, "file": "b"}, [(A, BEFORE), (B, AFTER)]),
        (
            {**JDBC, "table.whitelist": "a,b"},
            {**JDBC, "table.whitelist": "b,c"},
            [({"protocol": "1", "table": "s.a"}, BEFORE), ({"protocol": "1", "table": "s.b"}, AFTER)],
        ),
        ({**JDBC, "schema.pattern": "a"}, {**JDBC, "schema.pattern": "b"}, [({"table": "a"}, BEFORE)]),
        (
            {**SPOOLDIR, "input.file.pattern": "a.*"},
            {**SPOOLDIR, "input.file.pattern": "b.*"},
            [({"fileName": "a1"}, BEFORE), ({"fileName": "b1"}, AFTER)],
        ),
    ],
)  # fmt: skip
def test_of_what_is_not_certain_nothing_is_said(
    before: Mapping[str, str], after: Mapping[str, str], keys: Sequence[tuple[Mapping[str, object], int]]
) -> None:
    assert judge(before, after, keys=keys) is None


def test_a_class_that_is_not_known_is_judged_by_what_it_commits() -> None:
    before, after = {**OWN, "where": "a"}, {**OWN, "where": "b"}
    one, two = {"of": "a"}, {"of": "b"}
    found = judge(before, after, keys=[(one, BEFORE - 1), (one, BEFORE), (two, AFTER), (two, AFTER + 1)])
    assert found is not None
    assert (found.code, found.severity) == ("source_partitions_changed", "warning")
    assert found.evidence["left_behind"] == [one]
    assert found.evidence["source_partitions"] == [two]
    assert judge(before, after, keys=[(one, BEFORE), (two, AFTER)]) is not None
    assert judge(before, after, keys=[(A, BEFORE), (A, BEFORE), (B, AFTER), (B, AFTER)]) is not None  # as FileStream's


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        ({"tasks.max": "2"}, [({"of": "a"}, BEFORE), ({"of": "b"}, AFTER)]),  # a setting of Connect's
        ({"where": "b"}, [({"of": "a"}, BEFORE)]),
        ({"where": "b"}, [({"of": "b"}, AFTER)]),
        ({"where": "b"}, [({"of": "a"}, BEFORE), ({"of": "a"}, AFTER), ({"of": "b"}, AFTER)]),  # one goes on
        ({"where": "b"}, [({"of": "b"}, BEFORE), ({"of": "a"}, BEFORE), ({"of": "b"}, AFTER)]),
        ({"where": "b"}, [({"of": "0"}, 0), ({"of": "a"}, BEFORE), ({"of": "b"}, AFTER)]),  # a file a day
    ],
)
def test_a_class_that_is_not_known_is_not_accused(
    change: Mapping[str, str], keys: Sequence[tuple[Mapping[str, object], int]]
) -> None:
    assert judge({**OWN, "where": "a"}, {**OWN, "where": "a", **change}, keys=keys) is None


def test_a_file_a_day_is_a_note_where_the_config_does_not_name_it() -> None:
    one, two = {"path": "/in/day-1"}, {"path": "/in/day-2"}
    found = judge({**OWN, "batch": "1"}, {**OWN, "batch": "2"}, keys=[(one, BEFORE), (two, AFTER)])
    assert found is not None
    assert found.severity == "info"
    found = judge({**OWN, "folder": "/in/day-1"}, {**OWN, "folder": "/in/day-2"}, keys=[(one, BEFORE), (two, AFTER)])
    assert found is not None
    assert found.severity == "warning"


def test_a_config_that_was_put_back_is_not_named() -> None:
    a, b = {**FILE, "file": "a"}, {**FILE, "file": "b"}
    assert judge(a, b, a, keys=[(A, BEFORE), (B, CHANGED_MS - 500), (A, AFTER)]) is None
    assert judge(a, b, a, keys=[(A, BEFORE), (B, CHANGED_MS - 500)]) is None
    assert judge(a, b, keys=[(A, BEFORE), (B, CHANGED_MS + 500)]) is not None


def test_a_former_config_that_was_compacted_away_and_offsets_that_were_reset() -> None:
    assert judge({**FILE, "file": "b"}, keys=[(A, BEFORE), (B, AFTER)]) is None
    assert judge({**FILE, "file": "a"}, {**FILE, "file": "b"}, keys=[(A, BEFORE)], deleted=True) is None
    assert judge(keys=[(A, BEFORE)]) is None


def test_a_renamed_server_of_debezium() -> None:
    renamed = {**POSTGRES, "topic.prefix": "new"}
    keys = [({"server": "old"}, BEFORE), ({"server": "new"}, AFTER)]
    assert judge({**POSTGRES, "topic.prefix": "old"}, renamed, keys=keys) is not None
    same = {**POSTGRES, "database.server.name": "new"}  # the name of before 2.0
    assert judge(same, renamed, keys=[({"server": "new"}, BEFORE)]) is None


def test_configs_before_a_deletion_are_of_another_connector() -> None:
    old, new = {"properties": {"file": "a", "offsets.storage.topic": "x"}}, {"properties": {"file": "b"}}
    gone = written_configs(config_records(("connector-c", old), ("connector-c", None), ("connector-c", new)))
    assert [each.config for each in gone["c"]] == [{"file": "b"}]
    kept = written_configs(config_records(("connector-c", old), ("connector-c", b"junk"), ("connector-c", new)))
    assert [each.config["file"] for each in kept["c"]] == ["a", "b"]
    assert former_offsets_topics(kept) == {"c": "x"}


def test_doctor_says_it_and_is_quiet_otherwise(invoke: Invoke) -> None:
    first, *rest = created("orders", 1, record=1, config={"file": "/a"})
    pairs = [first, *rest, *created("orders", 1, record=1, config={"file": "/b"})]
    records = [each._replace(timestamp_ms=CHANGED_MS) for each in config_records(*pairs)]
    key = b'["orders",{"filename":"/a"}]'
    left = Record(OFFSETS, partition_for(key, 25), 0, CHANGED_MS - 1, key, b'{"position":1}')
    there = cluster(records=records, offsets=[left], configs={"orders": {"file": "/b"}})
    assert ("offsets", "source_partitions_changed", "warning") in found(invoke, there, 0)
    there = cluster(records=records[:4], offsets=[left], configs={"orders": {"file": "/a"}})
    assert found(invoke, there, 0) == HEALTHY
