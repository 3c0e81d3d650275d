"""What other tools print of records, read back whole, or refused with its line.

`printed/` is what the tools of Kafka 4.3.1 printed of a sandbox's topics, and kcat and rpk in public reports; the
session key and the paths are replaced by others of the same length.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from eosctl.core.kept.record_formats import read_dump
from eosctl.core.records import UNKNOWN, Record
from eosctl.errors import InputFileError

PRINTED = Path(__file__).parent / "printed"
CONFIG_KEYS = [b"session-key", b"connector-cdc", b"task-cdc-0", b"commit-cdc", b"tasks-fencing-cdc"]


def read(content: bytes | str) -> tuple[list[Record], list[str]]:
    data = content.encode() if isinstance(content, str) else content
    dump = read_dump(data.splitlines(keepends=True), name="f")
    return [record for _line, record in dump.records], dump.cautions


def printed(name: str) -> tuple[list[Record], list[str]]:
    return read((PRINTED / name).read_bytes())


@pytest.mark.parametrize("name", ["console-configs.txt", "console-keys.txt", "dump-configs.txt"])
def test_the_config_topic_is_read_back(name: str) -> None:
    records, _cautions = printed(name)
    assert [record.key for record in records] == CONFIG_KEYS
    assert records[3].value == b'{"tasks":1}'
    known = name != "console-keys.txt"
    assert [record.offset for record in records] == ([0, 2, 4, 6, 8] if known else [UNKNOWN] * 5)


def test_kcats_payload_and_time_are_value_and_timestamp() -> None:
    records, cautions = printed("kcat-configs.txt")
    assert [record.offset for record in records] == [2, 3, 4, 5]
    assert records[2][:6] == ("connect-configs", 0, 4, 1_790_000_000_000, b"commit-cdc", b'{"tasks":1}')
    assert records[3].value is None
    assert cautions == []  # librdkafka reads committed records unless told otherwise


def test_rpk_prints_a_record_over_several_lines_or_on_one() -> None:
    records, cautions = printed("rpk-configs.txt")
    assert [(record.partition, record.offset, record.timestamp_ms) for record in records] == [(0, 2, 1_790_000_000_000)]
    assert cautions
    line = '{"topic":"t","key":"commit-c","timestamp":5,"partition":0,"offset":7}\n'
    [deletion], _cautions = read(line)
    assert deletion == Record("t", 0, 7, 5, b"commit-c", None)
    assert len(read(line * 3)[0]) == 3


def test_the_console_consumers_columns_and_tombstones() -> None:
    records, cautions = printed("console-offsets.txt")
    assert [(record.partition, record.offset) for record in records] == [(2, 0), (2, 3), (3, 0)]
    assert records[1].key == '["gone",{"f":"aé"}]'.encode()
    assert records[1].value is None
    assert len(cautions) == 1  # it prints aborted records, too: the first is one


@pytest.mark.parametrize("separator", ["|", ":", " ", " => ", ","])
def test_a_separator_of_ones_own_is_found_where_the_line_shows_it(separator: str) -> None:
    line = f'["c",{{"f":"a:b|c, d"}}]{separator}{{"n":1,"m":"x:y|z"}}\n'
    [record, deletion] = read(line + f'["c",{{"f":"e"}}]{separator}null\n')[0]
    assert (record.key, record.value) == (b'["c",{"f":"a:b|c, d"}]', b'{"n":1,"m":"x:y|z"}')
    assert (deletion.key, deletion.value) == (b'["c",{"f":"e"}]', None)
    with_columns = separator.join(["CreateTime:1", "Partition:2", "Offset:3", "commit-c", '{"tasks":1}'])
    [commit], _ = read(with_columns)
    assert commit == Record("", 2, 3, 1, b"commit-c", b'{"tasks":1}')


def test_a_dump_of_segments_has_only_committed_records() -> None:
    assert [record.key for record in printed("dump-aborted.txt")[0]] == ['["gone",{"f":"aé"}]'.encode()]
    whole, cautions = printed("dump-offsets.txt")
    assert [(record.topic, record.partition) for record in whole] == [("connect-offsets", 1), ("connect-offsets", 3)]
    assert whole[0].value == b'{\n  "n": 1\n}'
    assert cautions == []


def test_a_dump_that_ends_within_a_transaction_ends_before_it() -> None:
    text = (PRINTED / "dump-configs.txt").read_text()
    cut = text[: text.index("baseOffset: 7 ")]
    records, cautions = read(cut)
    assert [record.offset for record in records] == [0, 2, 4]
    assert len(cautions) == 1


def segment(text: str, name: str) -> str:
    return f"Dumping /d/connect-offsets-2/{name}.log\n{text}"


def test_the_marker_of_another_transaction_does_not_end_one_whose_own_is_in_a_missing_segment() -> None:
    """The records of a committed transaction were left out as aborted, or aborted ones taken, without a word."""
    lines = (PRINTED / "dump-aborted.txt").read_text().splitlines(keepends=True)[2:]
    aborted, its_abort, gone, its_commit = ("".join(lines[at : at + 2]) for at in (0, 2, 4, 6))
    whole = [segment(aborted, "0") + segment(its_abort, "1"), segment(gone, "2") + segment(its_commit, "6")]
    assert [record.offset for record in read("".join(whole))[0]] == [3]
    for missing in (segment(aborted, "0") + segment(gone + its_commit, "2"), "".join(reversed(whole)), whole[1] * 2):
        with pytest.raises(InputFileError, match=r"^f, line \d+: "):
            read(missing)
    between, cautions = read(segment(aborted + its_abort, "0") + segment(its_commit, "6"))
    assert (between, cautions) == ([], [])  # compaction leaves gaps, where no transaction is open


def test_lines_made_to_be_slow_are_not() -> None:
    """Each tab was tried as the end of a key, and each line of a value copied all lines before it."""
    with pytest.raises(InputFileError):
        read("[" + "\t" * 200_000 + "\n")
    with pytest.raises(InputFileError):
        read("connector-" + "\t" * 200_000 + "\n")
    with pytest.raises(InputFileError):
        read("baseOffset: 1 lastOffset: 1 " + "producerId: 1 " * 50_000 + "\n")
    value = "\n" * 300_000
    [record], _cautions = read(
        BATCH.replace("isTransactional: true", "isTransactional: false")
        + RECORD.partition(" key: ")[0].replace("valueSize: 114", f"valueSize: {len(value)}")
        + f" key: session-key payload: {value}\n"
    )  # fmt: skip
    assert record.value == value.encode()


KCAT = '{"topic":"t","partition":0,"offset":1,"tstype":"create","ts":1,"broker":1,"key":"commit-c","payload":"{}"}\n'
BATCH, RECORD = (PRINTED / "dump-configs.txt").read_text().splitlines(keepends=True)[2:4]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (KCAT + KCAT.replace('"{}"', '{"decoded":1}'), 2),
        (KCAT + KCAT.replace('"payload":"{}"', '"payload":null,"payload_error":"x"'), 2),
        (KCAT + KCAT.replace("{}", "�"), 2),
        (KCAT + KCAT.replace('"broker":1', '"headers":{"a":["b"]}'), 2),
        (KCAT + KCAT.replace('"broker":1', '"headers":["h","\ufffd"]'), 2),
        (KCAT + KCAT[:40] + "\n", 2),
        (KCAT.encode() + KCAT.encode().replace(b"{}", b"\xff"), 2),
        ('{\n  "topic": "t",\n  "value_size": 3,\n  "partition": 0,\n  "offset": 0,\n  "timestamp": 1\n}\n', 1),
        ('{\n  "topic": "t",\n', 1),
        ("commit-c\tnull\ncommit-c\n", 2),  # no value
        ('commit-c\tnull\nh:v\tcommit-c\t{"tasks":1}\n', 2),  # a header, which could be a part of the key
        ('commit-c\tnull\ncommit-c:{"tasks":1}\n', 2),  # another separator
        ('commit-c\tnull\nconnector-a\tb\t{"properties":{}}\n', 2),  # a name with a tab
        ('["c",{}]\t{"n":1}\n["c",{}]\t{\n"n":1}\n', 2),  # a value of several lines
        ("Partition:2147483648\tOffset:1\tcommit-c\tnull\n", 1),
        ("Partition:1\tOffset:9223372036854775808\tcommit-c\tnull\n", 1),
        (BATCH + RECORD.replace("offset: 0", "offset: 9223372036854775808"), 2),
        (BATCH + RECORD.replace("CreateTime: 1", "CreateTime: -1"), 2),
        (RECORD, 1),  # without its batch, and so without its transaction
        (BATCH.replace("isvalid: true", "isvalid: false") + RECORD, 1),
        (BATCH + RECORD.replace("headerKeys: []", "headerKeys: [h]"), 2),
        (BATCH + RECORD.replace("keySize: 11", "keySize: 10"), 2),
        (BATCH + RECORD.replace("keySize: 11", "keySize: 12"), 2),
        (BATCH + RECORD.replace("valueSize: 114", "valueSize: 900"), 2),
        (BATCH + RECORD.replace("session-key", "sess�n-key"), 2),
        (BATCH + "| key: session-key payload: {}\n", 2),  # --skip-record-metadata
    ],
)
def test_what_is_ambiguous_is_refused_with_its_line(content: str | bytes, line: int) -> None:
    with pytest.raises(InputFileError, match=rf"^f, line {line}: ") as error:
        read(content)
    assert error.value.hint


def test_eosctls_own_lines_are_nobody_elses() -> None:
    own = b'{"topic":"t","partition":0,"timestamp_ms":1,"key":"k","value":"payload"}\n'
    dump = read_dump([b"\n", own], name="f")
    assert dump.own_lines is not None
    assert list(dump.own_lines) == [b"\n", own]
    [record], cautions = read(own)
    assert (record, cautions) == (Record("t", 0, UNKNOWN, 1, b"k", b"payload"), [])


def test_an_empty_file_has_no_records() -> None:
    assert read(b"\n\n") == ([], [])
