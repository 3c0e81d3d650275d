"""Offsets of Debezium and MirrorMaker on terminals of all widths: JSON breaks behind commas, and nothing sticks out."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import convert

from eosctl.explain.kinds import declared_kinds
from eosctl.output import render_report
from eosctl.output.rows import classes_in
from eosctl.output.text import fold, fold_hard, longest_piece
from eosctl.report import Report, Row
from tests.output.test_text import Terminal

WIDTHS = (80, 100, 120, 200)
PARTITIONS: list[Mapping[str, object]] = [
    {"server": "inventory-production"},
    {"server": "inventory", "database": "warehouse_europe_west_3"},
    {"cluster": "primary", "partition": 11, "topic": "orders.public.customers"},
    {"protocol": "1", "table": "warehouse.public.purchase_order_lines"},
]
OFFSETS: list[Mapping[str, object]] = [
    {"transaction_id": None, "lsn_proc": 28717056, "messageType": "INSERT", "lsn_commit": 28717056, "lsn": 28717056,
     "txId": 755, "ts_usec": 1732250000000000},
    {"commit_lsn": "0000006a:00006608:0003", "snapshot": "INITIAL", "snapshot_completed": True, "event_serial_no": 1,
     "change_lsn": "0000006a:00006608:0002"},
    {"transaction_id": None, "ts_sec": 1732250000, "file": "mysql-bin.000009", "pos": 574318212, "row": 1,
     "gtids": "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-77,4f22fb58-82db-22f2-0f44-d91bb0530673:1-99", "event": 2},
    {"snapshot_pending_tx": "", "scn": "238471239874123", "commit_scn": "238471239874127:1:02000a00c0070000"},
]  # fmt: skip
WORDS = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9.]+|true|false|null')


KINDS = sorted(
    kind
    for kind in (name for name, kind in declared_kinds().items() if kind.text.columns)
    if kind.startswith("offsets-") and not kind.startswith(("offsets-switch", "offsets-snapshot"))
)
"""Those whose rows have offsets."""


OTHERWISE: Mapping[str, Row] = {"offsets-log": {"lsn": {"lsn": "0/1B63000", "lsn_proc": "0/1B63000"}}}
"""Members that these kinds have in another shape."""


def rows(*, same: bool = False) -> list[Row]:
    """A row of each kind of offsets, with every member that a view of offsets shows."""
    made: list[Row] = []
    for partition, offset in zip(PARTITIONS, OFFSETS, strict=True):
        after = offset if same else {**offset, "extra": 1}
        cell = {"topic": "connect-offsets", "partition": 17, "offset": 123456, "timestamp": "2026-11-22T05:10:11.123Z",
                "timestamp_ms": 0}  # fmt: skip
        place = {"topic": "connect-offsets", "partition": 17}
        lsn = {"lsn": "0/1B63000", "lsn_proc": "0/1B63000"}
        made.append(
            {
                "connector": "inventory-source", "source_partition": partition, "flags": ["wrong_partition"],
                "key": json.dumps(["inventory-source", partition], separators=(",", ":")),
                "stores": {"global": {**cell, "value": offset, "lsn": lsn}, "dedicated": {**cell, "value": after}},
                "effective": {"documented": after, "runtime": after}, "rest": {"offset": offset, "status": "same"},
                "left": {**cell, "value": offset}, "right": {**cell, "value": after}, "status": "differs",
                "action": "write", "reason": "conflict_kept", "before": offset, "after": after, "target": place,
                "lsn": {"before": lsn, "after": lsn}, "outcome": "written", "backup": offset, "newer": None,
                "expected": offset, "actual": after, "side": "target", "severity": "warning", "code": "wrong_partition",
                "subject": "connect-offsets", "message": "a key is on partition 3", "fix": "import it", "step": "merge",
                "detail": "4 offsets", "age_ms": None, "evidence": {}, **cell, "value": offset, "tombstone": False,
                "state": "committed",
                "jumped_from": {"offset": 123450, "value": after},
            }
        )  # fmt: skip
    return made


def shown(kind: str, found: list[Row], *, output: str = "wide", color: bool = False) -> str:
    stream = Terminal()
    render_report(report_of(kind, found), output=output, stream=stream, color=color)
    return re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())


def report_of(kind: str, found: list[Row]) -> Report:
    """A report of that kind with as much of these rows as it has members for."""
    data: dict[str, Any] = {
        "via": "topic", "via_reason": "asked for", "to": "own", "connector": "c", "changes": changes(), "ignored": [],
        "left": "global", "right": "dedicated", "clusters": {}, "topics": [], "partitions": [], "rows_per_code": 1,
        "unseen": [], "creates": [], "overrides": [], "keys": 4, "backup": None, "undo": None, "from": "global",
        "state": "RUNNING", "config": {"property": "p", "before": None, "after": None}, "kept_elsewhere": None,
        "writes": [], "journal": "j",
        "plan": "p", "planned_at": "now", "snapshot": "s", "policy": "merge", "parts": 0, "connector_counts": {},
        "sources": [], "targets": [], "plan_file": None, "created": [], "not_created": [], "skipped": [],
    }  # fmt: skip
    if kind not in declared_kinds():
        return Report(kind=kind, rows=found, data=data)
    declared = declared_kinds()[kind]
    counts = dict.fromkeys(("write", "delete", "keep", "conflict"), 0)
    fields = getattr(declared.summary, "__struct_fields__", ())  # where it is no class: none
    summary: dict[str, Any] = dict.fromkeys(fields, 0)
    summary |= {name: value for name, value in (("counts", counts), ("codes", {})) if name in fields}
    if kind == "offsets-migrate-result":
        data["topics"] = {}
    if kind == "offsets-verify":
        data["backup"] = "b"
    return Report(
        kind=declared,
        rows=[convert({**row, **OTHERWISE.get(kind, {})}, classes_in(declared.row)[0]) for row in found],
        summary=convert(summary, declared.summary),
        data=convert(data, declared.data),
    )


def changes() -> list[Row]:
    members = ("source_partition", "member", "change", "before", "after", "lsn")
    return [
        dict(zip(members, (partition, "gtids", "changed", offset.get("gtids"), offset.get("gtids"), None), strict=True))
        for partition, offset in zip(PARTITIONS, OFFSETS, strict=True)
    ]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("output", ["text", "wide"])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_wider_than_the_terminal(
    monkeypatch: pytest.MonkeyPatch, kind: str, output: str, width: int
) -> None:
    """A Debezium offset is one word of 150 characters: it stuck out of blocks, and tables cut numbers in two."""
    monkeypatch.setenv("COLUMNS", str(width))
    text = shown(kind, rows(), output=output, color=width == 120)
    assert max(map(len, text.splitlines())) <= width
    for offset in OFFSETS if "BEFORE" in text else ():
        for word in WORDS.findall(json.dumps(offset)):
            if "," not in word:
                assert word in text, f"{word} was broken"


def test_json_breaks_behind_commas_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = shown("offsets-diff", rows(), output="text").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("LEFT"))
    assert lines[start : start + 3] == [
        'LEFT              {"transaction_id":null,"lsn_proc":28717056,',
        '                  "messageType":"INSERT","lsn_commit":28717056,"lsn":28717056,',
        '                  "txId":755,"ts_usec":1732250000000000}',
    ]


@pytest.mark.parametrize("width", [80, 200])
def test_a_column_equal_to_its_neighbour_says_same(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Four columns had the same 150 characters; whether they were equal had to be read."""
    monkeypatch.setenv("COLUMNS", str(width))
    text = shown("offsets-list", rows(same=True)[:1], output="text")
    if width == 80:
        lines = [line.split() for line in text.splitlines()]
        assert [line[1:] for line in lines if line and line[0] in ("DEDICATED", "DOCUMENTED", "RUNTIME")] == [
            ["same"]
        ] * 3
    else:
        assert text.splitlines()[1].split()[-5:] == ["same", "same", "same", "-", "wrong_partition"]
    assert text.count('"ts_usec"') == 1


def test_a_pipe_is_told_everything() -> None:
    """Programs read it, and people search in it."""
    stream = io.StringIO()
    render_report(report_of("offsets-list", rows(same=True)), output="text", stream=stream, color=False)
    assert stream.getvalue().count('"ts_usec":1732250000000000') == 4
    assert "same" not in stream.getvalue()


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ('{"a":1,"b":2}', 8, ['{"a":1,', '"b":2}']),
        ('{"a":1,"b":2}', 13, ['{"a":1,"b":2}']),
        ('{"a":"x y,z"}', 9, ['{"a":"x', 'y,z"}']),
        ("word,word,word", 6, ["word,word,word"]),
        ('see {"a":1,"b":2} there', 9, ["see", '{"a":1,', '"b":2}', "there"]),
        ("undo: eosctl offsets restore f", 9, ["undo: eosctl offsets restore f"]),
        ("a" * 12, 5, ["a" * 12]),
        ("fix: kafka-acls.sh --add --topic t", 9, ["fix: kafka-acls.sh --add --topic t"]),
        ("then `eosctl fence x`; and b", 9, ["then", "`eosctl fence x`;", "and b"]),
    ],
)
def test_fold(text: str, width: int, lines: list[str]) -> None:
    assert fold(text, width, hanging="") == lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("error    a b", ["error    a", "         b"]),
        ("  pass  a: b c", ["  pass  a: b", "        c"]),
        ("         fix: a", ["         fix:", "           a"]),
        ("it has a word", ["it has a", "  word"]),
    ],
)
def test_the_further_lines_begin_where_the_text_behind_a_label_does(text: str, lines: list[str]) -> None:
    """Findings were not folded: terminals broke them within words."""
    assert fold(text, len(lines[0])) == lines


def test_a_column_has_no_room_for_what_is_too_long() -> None:
    assert fold_hard("a" * 12 + " b", 5) == ["aaaaa", "aaaaa", "aa", "b"]
    assert fold_hard("", 5) == [""]
    assert [longest_piece(text) for text in ("", "ab abc", '["c",{"server":"x"}]')] == [0, 3, 15]
