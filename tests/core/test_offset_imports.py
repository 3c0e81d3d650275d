"""What a file of offsets asks for: both formats, which of two records counts, and what a store then needs."""

from __future__ import annotations

import json

import pytest

from eosctl.core.migration_rules import Action
from eosctl.core.murmur2 import partition_for
from eosctl.core.offset_imports import parse_offsets_file, plan_import, rest_body
from eosctl.core.offset_views import Store, fold_store
from eosctl.core.record_file import record_line
from eosctl.core.records import Bounds, Record, TopicRead
from eosctl.errors import InputFileError, RefusedError, UsageError

PARTITIONS = 5
A, B = b'["c",{"f":"a"}]', b'["c",{"f":"b"}]'
HOME = partition_for(A, PARTITIONS)
AWAY = (HOME + 1) % PARTITIONS


def store(*records: Record) -> Store:
    bounds = tuple(Bounds(partition, 0, 9, 9) for partition in range(PARTITIONS))
    in_order = tuple(sorted(records, key=lambda each: (each.partition, each.offset)))
    return fold_store(TopicRead("t", bounds, in_order, len(in_order)))


def record(
    key: bytes, value: bytes | None, *, partition: int | None = None, offset: int = 0, at: int = 10, topic: str = "t"
) -> Record:
    place = partition_for(key, PARTITIONS) if partition is None else partition
    return Record(topic, place, offset, at, key, value)


def lines(*records: Record) -> bytes:
    return "".join(f"{record_line(each)}\n" for each in records).encode()


@pytest.mark.parametrize(
    ("there", "wanted", "action", "reason"),
    [
        ([], record(A, b"1"), Action.WRITE, "missing"),
        ([], record(A, None), Action.DELETE, "deleted_in_file"),
        ([record(A, b"1")], record(A, b"1", at=99), Action.KEEP, "equal"),
        ([record(A, None)], record(A, None), Action.KEEP, "equal"),
        ([record(A, b"0", at=1)], record(A, b"1"), Action.WRITE, "differs"),
        ([record(A, b"0", at=11)], record(A, b"1"), Action.WRITE, "over_newer"),
        ([record(A, b"0")], record(A, None), Action.DELETE, "deleted_in_file"),
        ([record(A, b"1", partition=AWAY)], record(A, b"1"), Action.WRITE, "differs"),
    ],
)
def test_what_a_record_does_to_a_store(there: list[Record], wanted: Record, action: Action, reason: str) -> None:
    plan = plan_import(parse_offsets_file(lines(wanted), name="f"), store(*there))
    assert [(write.action, write.reason, write.partition) for write in plan.writes] == [(action, reason, HOME)]


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        (record(A, b"1", offset=4), record(A, b"2", offset=5), b"2"),
        (record(A, b"1", offset=5, at=1), record(A, b"2", offset=4, at=9), b"1"),  # in one partition the offset decides
        (record(A, b"1", partition=AWAY, at=9), record(A, b"2", at=1), b"1"),
        (record(A, b"1", partition=AWAY, at=-1, offset=-1), record(A, b"2", at=-1, offset=-1), b"2"),
        (record(A, b"1", topic="other", at=9), record(A, None, at=1), b"1"),
    ],
)
def test_of_two_records_on_one_key_the_newer_is_written_and_the_other_reported(
    first: Record, second: Record, winner: bytes
) -> None:
    plan = plan_import(parse_offsets_file(lines(first, second), name="f"), store())
    assert [write.after for write in plan.writes] == [winner]
    [lost] = plan.superseded
    assert {lost.incoming.place, lost.by.place} == {"f, line 1", "f, line 2"}
    assert lost.by.record.value == winner


def test_every_superseded_record_names_the_one_that_is_written() -> None:
    log = [record(A, str(n).encode(), offset=n) for n in range(3)]
    plan = plan_import(parse_offsets_file(lines(*log), name="f"), store())
    assert [(each.incoming.line, each.by.line) for each in plan.superseded] == [(1, 3), (2, 3)]


def test_kept_partitions_are_apart_and_must_exist() -> None:
    both = lines(record(A, b"1"), record(A, b"2", partition=AWAY))
    plan = plan_import(parse_offsets_file(both, name="f"), store(), keep_partitions=True)
    assert {write.partition: write.after for write in plan.writes} == {HOME: b"1", AWAY: b"2"}
    assert plan.superseded == ()
    again = store(record(A, b"1"), record(A, b"2", partition=AWAY))
    kept = plan_import(parse_offsets_file(both, name="f"), again, keep_partitions=True)
    assert {write.action for write in kept.writes} == {Action.KEEP}
    beyond = parse_offsets_file(b"\n" + lines(record(A, b"1", partition=7)), name="f")
    with pytest.raises(InputFileError, match="f, line 2: topic t has 5 partitions, no number 7"):
        plan_import(beyond, store(), keep_partitions=True)


def test_keys_that_connect_ignores_are_kept_and_others_filtered() -> None:
    """They used to be left out: then the import of an export was not the same topic."""
    keyless = record(A, b"1")._replace(key=None)
    content = lines(record(A, b"1"), record(b"junk", b"1"), keyless, record(b'["d",{}]', b"1"))
    whole = parse_offsets_file(content, name="f")
    assert ([each.key.raw for each in whole.incoming], len(whole.keyless)) == ([A, b"junk", b'["d",{}]'], 1)
    mine = parse_offsets_file(content, name="f", connectors=["c"])
    assert ([each.key.raw for each in mine.incoming], mine.keyless) == ([A], ())


BODY = {
    "offsets": [
        {"partition": {"topic": "t1", "partition": 3, "cluster": "A"}, "offset": {"offset": 7}},
        {"partition": {"f": "a"}, "offset": None},
    ]
}


@pytest.mark.parametrize("indent", [None, 2])
def test_a_body_is_written_as_connect_would(indent: int | None) -> None:
    file = parse_offsets_file(json.dumps(BODY, indent=indent).encode(), name="f", connectors=["c"])
    plan = plan_import(file, store())
    assert {write.key.raw: write.after for write in plan.writes} == {
        b'["c",{"cluster":"A","partition":3,"topic":"t1"}]': b'{"offset":7}',
        A: None,
    }


def test_a_body_takes_the_spelling_that_the_store_has() -> None:
    """REST itself would write a second key here, which the connector never reads."""
    own = b'["c",{"topic":"t1","partition":3,"cluster":"A"}]'
    file = parse_offsets_file(json.dumps(BODY).encode(), name="f", connectors=["c"])
    plan = plan_import(file, store(record(own, b'{"offset":1}')))
    assert {write.key.raw for write in plan.writes} == {own, A}
    with pytest.raises(RefusedError, match=r"f, offsets\[0\]: the store has 2 spellings"):
        plan_import(file, store(record(own, b"1"), record(own.replace(b",", b", "), b"1")))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b'{"offsets": [{"partition": {"f": "a"}}]}', r"f, offsets\[0\]"),
        (b'{"offsets": [{"partition": null, "offset": {}}]}', r"f, offsets\[0\]"),
        (b'{"offsets": [{"partition": {"f": [1]}, "offset": {}}]}', r"f, offsets\[0\]: \[1\] cannot be"),
        (b'{"topic":"t","partition":0,"key":"k","value":null}\n{"topic":"t"}\n', "f, line 2: not a record"),
        (b"[1]\n", "f, line 1"),
        (b"{\n", "f, line 1"),
        (b"\xff\n", "f, line 1"),
    ],
)
def test_errors_name_the_file_and_the_place(content: bytes, complaint: str) -> None:
    with pytest.raises(InputFileError, match=complaint):
        parse_offsets_file(content, name="f", connectors=["c"])


def test_a_body_needs_one_connector() -> None:
    for connectors in ([], ["c", "d"]):
        with pytest.raises(UsageError, match="does not say whose"):
            parse_offsets_file(json.dumps(BODY).encode(), name="f", connectors=connectors)


def test_a_body_holds_live_offsets_and_tells_what_it_can_not_hold() -> None:
    spaced = b'["c",{"f" : "a"}]'
    body = rest_body(
        store(
            record(A, b'{"n":1}', at=1),
            record(spaced, b'{"n":2}', at=2),
            record(B, None),
            record(b'["c",null]', b'{"n":3}'),
            record(b'["c",{"f":"x"}]', b'{"n":[1]}'),
            record(b'["c",{"f":"y"}]', b"{nope"),
            record(b'["d",{"f":"a"}]', b'{"n":9}'),
        ),
        "c",
    )
    assert json.loads(body.text()) == {"offsets": [{"partition": {"f": "a"}, "offset": {"n": 2}}]}
    assert sorted(reason for _record, reason in body.left_out) == [
        "not_an_offset",
        "not_an_offset",
        "null_partition",
        "other_spelling",
    ]
