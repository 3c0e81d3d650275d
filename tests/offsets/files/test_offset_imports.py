"""What a file of offsets asks for: both formats, which of two records counts, and what a store then needs."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence

import pytest

from eosctl.app import App
from eosctl.core.offsets.names import partition_for
from eosctl.core.offsets.views import KeyAction, Store
from eosctl.core.records import Record, record_line
from eosctl.engine.stores import as_columns
from eosctl.errors import InputFileError, RefusedError, UsageError
from eosctl.offsets.files import importing, offsets_file
from eosctl.offsets.files.importing import ImportPlan, read_offsets_file
from eosctl.offsets.files.offsets_file import OffsetsFile
from eosctl.offsets.files.rules import rest_body
from tests.core.offsets.stores import NO_SPOOL, PARTITIONS, store

A, B = b'["c",{"f":"a"}]', b'["c",{"f":"b"}]'
HOME = partition_for(A, PARTITIONS)
AWAY = (HOME + 1) % PARTITIONS


def record(
    key: bytes, value: bytes | None, *, partition: int | None = None, offset: int = 0, at: int = 10, topic: str = "t"
) -> Record:
    place = partition_for(key, PARTITIONS) if partition is None else partition
    return Record(topic, place, offset, at, key, value)


def parse_offsets_file(content: bytes, *, name: str, connectors: Sequence[str] = ()) -> OffsetsFile:
    return offsets_file.parse_offsets_file(io.BytesIO(content), NO_SPOOL, name=name, connectors=connectors)


def plan_import(file: OffsetsFile, there: Store, **how: bool) -> ImportPlan:
    return importing.plan_import(file, as_columns(there), NO_SPOOL, **how)


def keys_in(file: OffsetsFile) -> list[bytes]:
    return [key for table in file.tables() for key in table["key"].to_pylist()]


def lines(*records: Record) -> bytes:
    return "".join(f"{record_line(each)}\n" for each in records).encode()


@pytest.mark.parametrize(
    ("in_file", "rewrite", "sent"),
    [
        ([record(A, b"1", at=1)], True, {HOME: (b"1", "rewritten")}),
        (
            [record(A, b"1"), record(A, None, partition=AWAY)],
            False,
            {HOME: (b"1", "rewritten"), AWAY: (None, "deleted_in_file")},
        ),
        (
            [record(A, b"1"), record(A, b"2", partition=AWAY)],
            True,
            {HOME: (b"1", "rewritten"), AWAY: (b"2", "rewritten")},
        ),
        ([record(A, b"1")], False, {}),
    ],
)
def test_on_a_kept_partition_is_sent_what_the_file_has_for_it(
    in_file: list[Record], rewrite: bool, sent: dict[int, tuple[bytes | None, str]]
) -> None:
    """The newest value of the key went there, though another partition had it: the one to be deleted came back."""
    there = store(record(A, b"1", at=1), record(A, b"2", partition=AWAY, at=9))
    writes = plan_import(parse_offsets_file(lines(*in_file), name="f"), there, keep=True, rewrite=rewrite).writes
    assert {write.partition: (write.after, write.reason) for write in writes.sends()} == sent
    assert [write.after for write in writes if not write.sends()] == ([] if sent else [b"2"])
    conflicts = {write.partition for write in writes if write.conflict}
    assert conflicts == {place for place, (value, _reason) in sent.items() if value != b"2"}


@pytest.mark.parametrize(
    ("there", "wanted", "action", "reason"),
    [
        ([], record(A, b"1"), KeyAction.WRITE, "missing"),
        ([], record(A, None), KeyAction.DELETE, "deleted_in_file"),
        ([record(A, b"1")], record(A, b"1", at=99), KeyAction.KEEP, "equal"),
        ([record(A, None)], record(A, None), KeyAction.KEEP, "equal"),
        ([record(A, b"0", at=1)], record(A, b"1"), KeyAction.WRITE, "differs"),
        ([record(A, b"0", at=11)], record(A, b"1"), KeyAction.WRITE, "over_newer"),
        ([record(A, b"0")], record(A, None), KeyAction.DELETE, "deleted_in_file"),
        ([record(A, b"1", partition=AWAY)], record(A, b"1"), KeyAction.WRITE, "differs"),
    ],
)
def test_what_a_record_does_to_a_store(there: list[Record], wanted: Record, action: KeyAction, reason: str) -> None:
    before = store(*there)
    [write] = plan_import(parse_offsets_file(lines(wanted), name="f"), before).writes
    assert (write.action, write.reason, write.partition) == (action, reason, HOME)
    assert (write.before, write.replaces, write.after) == (before.records.get(A), before.at(A, HOME), wanted.value)
    other_value = bool(there) and there[0].value not in (None, wanted.value)
    assert write.conflict == (action is not KeyAction.KEEP and other_value)


def test_a_record_without_a_time_is_not_called_older() -> None:
    content = lines(record(A, b"1", at=-1))
    [write] = plan_import(parse_offsets_file(content, name="f"), store(record(A, b"0", at=11))).writes
    assert write.reason == "differs"


def test_on_a_kept_partition_counts_what_lies_there() -> None:
    """A key on two partitions: what a reader finds stays what the other one has."""
    there = store(record(A, b"1", at=1), record(A, b"2", partition=AWAY, at=9))
    file = parse_offsets_file(lines(record(A, b"1", at=1)), name="f")
    [write] = plan_import(file, there, keep=True).writes
    assert (write.action, write.reason, write.conflict) == (KeyAction.KEEP, "equal", False)
    assert (write.before, write.replaces, write.after) == (there.records[A], there.at(A, HOME), b"2")


@pytest.mark.parametrize(
    ("there", "wanted", "action", "reason"),
    [
        (record(A, b"1"), record(A, b"1"), KeyAction.WRITE, "rewritten"),
        (record(A, None), record(A, None), KeyAction.DELETE, "rewritten"),
        (record(A, b"0"), record(A, b"1"), KeyAction.WRITE, "over_newer"),
        (record(A, b"0"), record(A, None), KeyAction.DELETE, "deleted_in_file"),
    ],
)
def test_what_is_there_is_written_once_more_where_that_is_asked_for(
    there: Record, wanted: Record, action: KeyAction, reason: str
) -> None:
    file = parse_offsets_file(lines(wanted._replace(timestamp_ms=5)), name="f")
    [write] = plan_import(file, store(there), rewrite=True).writes
    assert (write.action, write.reason, write.after) == (action, reason, wanted.value)


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
    assert plan.superseded == 1
    [lost] = plan.first
    assert {lost.line, lost.by} == {1, 2}
    assert (first, second)[lost.by - 1].value == winner


def test_every_superseded_record_names_the_one_that_is_written() -> None:
    log = [record(A, str(n).encode(), offset=n) for n in range(3)]
    plan = plan_import(parse_offsets_file(lines(*log), name="f"), store())
    assert (plan.superseded, plan.first) == (2, [(1, 3), (2, 3)])


def test_kept_partitions_are_apart_and_must_exist() -> None:
    both = lines(record(A, b"1"), record(A, b"2", partition=AWAY))
    plan = plan_import(parse_offsets_file(both, name="f"), store(), keep=True)
    assert {write.partition: write.after for write in plan.writes} == {HOME: b"1", AWAY: b"2"}
    assert plan.superseded == 0
    again = store(record(A, b"1"), record(A, b"2", partition=AWAY))
    kept = plan_import(parse_offsets_file(both, name="f"), again, keep=True)
    assert {write.action for write in kept.writes} == {KeyAction.KEEP}
    last = parse_offsets_file(lines(record(A, b"1", partition=4)), name="f")
    assert [write.partition for write in plan_import(last, store(), keep=True).writes] == [4]
    beyond = parse_offsets_file(b"\n" + lines(record(A, b"1", partition=5)), name="f")
    with pytest.raises(InputFileError, match="f, line 2: there is no partition 5: topic t has 5 partitions") as caught:
        plan_import(beyond, store(), keep=True)
    assert caught.value.hint


def test_keys_that_connect_ignores_are_kept_and_others_filtered() -> None:
    """They used to be left out: then the import of an export was not the same topic."""
    keyless = record(A, b"1")._replace(key=None)
    content = lines(record(A, b"1"), record(b"junk", b"1"), keyless, record(b'["d",{}]', b"1"))
    whole = parse_offsets_file(content, name="f")
    assert (keys_in(whole), whole.keyless) == ([A, b"junk", b'["d",{}]'], 1)
    mine = parse_offsets_file(content, name="f", connectors=["c"])
    assert (keys_in(mine), mine.keyless) == ([A], 0)


BODY = {
    "offsets": [
        {"partition": {"topic": "t1", "partition": 3, "cluster": "A"}, "offset": {"offset": 7}},
        {"partition": {"f": "a"}, "offset": None},
    ]
}


@pytest.mark.parametrize(
    ("before", "indent", "after"), [("", None, ""), ("", 2, "\n"), ("\n ", None, "\n\n"), (" ", 2, "")]
)
def test_a_body_is_written_as_connect_would(before: str, indent: int | None, after: str) -> None:
    content = f"{before}{json.dumps(BODY, indent=indent)}{after}"
    file = parse_offsets_file(content.encode(), name="f", connectors=["c"])
    [incoming] = file.tables()
    assert [tuple(row.values())[1:] for row in incoming.to_pylist()] == [
        ("", -1, -1, -1, b'["c",{"cluster":"A","partition":3,"topic":"t1"}]', b'{"offset":7}', None),
        ("", -1, -1, -1, A, None, None),
    ]
    plan = plan_import(file, store())
    assert {write.key.raw: write.after for write in plan.writes} == {
        b'["c",{"cluster":"A","partition":3,"topic":"t1"}]': b'{"offset":7}',
        A: None,
    }


@pytest.mark.parametrize("bodies", [2, 3])
def test_several_bodies_in_one_file_are_refused(bodies: int) -> None:
    """All but the first used to be left out without a word."""
    body = json.dumps(BODY) + "\n"
    with pytest.raises(InputFileError, match="f holds more than a body") as caught:
        parse_offsets_file((body * bodies).encode(), name="f", connectors=["c"])
    assert caught.value.hint


def test_a_record_may_have_members_that_nobody_knows() -> None:
    content = b'{"topic":"t","partition":0,"key":"[\\"c\\",{}]","value":null,"offsets":[]}'
    assert keys_in(parse_offsets_file(content, name="f", connectors=["c"])) == [b'["c",{}]']


def test_a_record_file_has_its_own_spelling() -> None:
    """Only a body leaves open which bytes are meant."""
    spaced = b'["c",{"f" : "a"}]'
    plan = plan_import(parse_offsets_file(lines(record(A, b"1")), name="f"), store(record(spaced, b"0")))
    assert [(write.key.raw, write.reason) for write in plan.writes] == [(A, "missing")]


def test_a_body_takes_the_spelling_that_the_store_has() -> None:
    """REST itself would write a second key here, which the connector never reads."""
    own = b'["c",{"topic":"t1","partition":3,"cluster":"A"}]'
    file = parse_offsets_file(json.dumps(BODY).encode(), name="f", connectors=["c"])
    plan = plan_import(file, store(record(own, b'{"offset":1}')))
    assert {write.key.raw for write in plan.writes} == {own, A}
    with pytest.raises(RefusedError, match=r"f, offsets\[0\]: the store has 2 spellings") as caught:
        plan_import(file, store(record(own, b"1"), record(own.replace(b",", b", "), b"1")))
    assert caught.value.hint


def test_a_body_takes_the_spelling_that_is_alive() -> None:
    """`offsets set` wrote it, and the same in a body was refused; of deleted ones it is the one deleted last."""
    one, other = b'["c",{"f":"a","g":1}]', b'["c",{"g":1,"f":"a"}]'
    body = {"offsets": [{"partition": {"f": "a", "g": 1}, "offset": {"n": 2}}]}
    file = parse_offsets_file(json.dumps(body).encode(), name="f", connectors=["c"])
    for first, second, chosen in (
        (record(one, None, at=9), record(other, b"1", at=1), other),
        (record(one, b"1", at=1), record(other, None, at=9), one),
        (record(one, None, at=9), record(other, None, at=1), one),
    ):
        assert [write.key.raw for write in plan_import(file, store(first, second)).writes] == [chosen]


@pytest.mark.parametrize("offset", ['{"p":1e400}', '{"p":NaN}', '{"p":1,"p":2}', '{"p":{"q":1,"q":1}}'])
@pytest.mark.parametrize(
    "form",
    [
        '{{"offsets":[{{"partition":{{"f":"a"}},"offset":{}}}]}}',
        '{{"offsets":[\n{{"partition":{{"f":"a"}},"offset":{}}}]}}',
    ],
)
def test_a_body_that_is_not_read_alike_by_everybody_is_refused(form: str, offset: str) -> None:
    """The last of two members was taken, and what is no number became text: `offsets set` refuses both."""
    with pytest.raises(InputFileError, match=r"f: .*(twice|beyond|not JSON)"):
        parse_offsets_file(form.format(offset).encode(), name="f", connectors=["c"])


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b'{"offsets": [{"partition": {"f": "a"}}]}', r"f, offsets\[0\]"),
        (b'{"offsets": [{"partition": null, "offset": {}}]}', r"f, offsets\[0\]"),
        (b'{"offsets": [{"partition": {"f": [1]}, "offset": {}}]}', r"f, offsets\[0\]: \[1\] cannot be"),
        (b'{"topic":"t","partition":0,"key":"k","value":null}\n{"topic":"t"}\n', "f, line 2: not a record"),
        (b'{"offsets": {}}', 'f, line 1: not a record: "topic" is missing'),
        (b"[1]\n", "f, line 1"),
        (b"{\n", "f, line 1"),
        (b"\xff\n", "f, line 1"),
    ],
)
def test_errors_name_the_file_and_the_place(content: bytes, complaint: str) -> None:
    with pytest.raises(InputFileError, match=complaint):
        parse_offsets_file(content, name="f", connectors=["c"])


def test_what_no_offset_can_hold_is_said_with_what_can() -> None:
    with pytest.raises(InputFileError) as caught:
        parse_offsets_file(b'{"offsets": [{"partition": {"f": [1]}, "offset": {}}]}', name="f", connectors=["c"])
    assert caught.value.hint == "Connect takes strings, 64-bit integers, floats, booleans and null; nothing nested."


def test_a_body_needs_one_connector() -> None:
    for connectors in ([], ["c", "d"]):
        with pytest.raises(UsageError, match="does not name its connector") as caught:
            parse_offsets_file(json.dumps(BODY).encode(), name="f", connectors=connectors)
        assert caught.value.hint


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


@pytest.mark.parametrize(("first_at", "second_at", "kept"), [(1, 2, 2), (2, 1, 1), (1, 1, 2)])
def test_of_two_spellings_a_body_has_the_newest(first_at: int, second_at: int, kept: int) -> None:
    spaced = b'["c",{"f" : "a"}]'  # its bytes come first
    records = [record(spaced, b'{"n":1}', at=first_at), record(A, b'{"n":2}', at=second_at)]
    body = rest_body(store(*records), "c")
    assert [entry["offset"] for entry in body.offsets] == [{"n": kept}]
    assert body.left_out == ((records[2 - kept], "other_spelling"),)


def test_a_body_is_text_that_people_read() -> None:
    body = rest_body(store(record('["c",{"f":"ü"}]'.encode(), b'{"n":1}')), "c")
    entry = '    {\n      "partition": {\n        "f": "ü"\n      },\n      "offset": {\n        "n": 1\n      }\n    }'
    assert body.text() == f'{{\n  "offsets": [\n{entry}\n  ]\n}}'


def test_a_pipe_is_read_from_its_first_byte(app: App) -> None:
    """`offsets import <(zcat FILE.gz)`: what was read to see whether it is Parquet could not be read again."""
    out, into = os.pipe()
    try:
        with open(into, "wb") as writer:
            writer.write(b'{"topic":"t","partition":0,"key":"[\\"a\\",{}]","value":"1"}\n')
        file = read_offsets_file(app, f"/dev/fd/{out}", stdin=io.BytesIO())
    finally:
        os.close(out)
    assert keys_in(file) == [b'["a",{}]']
