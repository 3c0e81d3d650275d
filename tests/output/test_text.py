"""Text on a terminal and in a pipe: nothing is lost, whatever the width."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Annotated

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from eosctl.core.ids import Owner, TransactionalId
from eosctl.core.offsets.views import KeyAction
from eosctl.errors import EosctlError
from eosctl.fence.rows import FenceSummary
from eosctl.group.rows import WORKERS_LIST, AssignedPart, GroupData, GroupPart, TaskPart, WorkerRow, WorkersSummary
from eosctl.migrate.rows import (
    MIGRATED_OTHERWISE,
    OFFSETS_MIGRATE_PLAN,
    OFFSETS_MIGRATE_RESULT,
    MigratedRow,
    SourcePart,
)
from eosctl.offsets.rows import OFFSETS_LIST, Effective, ListData, OffsetsSummary, StoredRecord, ViewRow
from eosctl.output import render_problems, render_report
from eosctl.output.cells import TOTAL, Brief, duration, format_cell
from eosctl.output.rows import Counts, Kind, Place, Printed, Text, columns_of, wide_columns_of
from eosctl.output.text import fold
from eosctl.report import Problem, Report
from eosctl.txn.rows import TXN_DESCRIBE, DescribedRow, RowsSummary

HOUSE = Path(__file__).resolve().parents[2] / "eosctl"
PATH = "/data/" + "directory/" * 5 + "customers.txt"
CELL = StoredRecord(
    topic="connect-offsets", partition=3, offset=17, timestamp=None, timestamp_ms=None, value={"position": 292}
)
ROW = ViewRow(
    connector="customers",
    source_partition={"filename": PATH},
    key="k",
    stores={"global": CELL, "dedicated": None},
    effective=Effective(documented={"position": 292}, runtime=None),
    age_ms=None,
    flags=["not_seen_at_runtime"],
)
SUMMARY = OffsetsSummary(connectors=1, source_partitions=1, not_seen_at_runtime=1, ignored_keys=0)


def listed(*rows: ViewRow) -> Report:
    """A report of `offsets list`."""
    return Report(kind=OFFSETS_LIST, rows=rows, summary=SUMMARY, data=ListData(ignored=[]))


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def _text(report: Report, stream: io.StringIO, *, color: bool = False) -> str:
    render_report(report, output="text", stream=stream, color=color)
    return re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())


def test_a_pipe_gets_one_line_per_row_however_long() -> None:
    lines = _text(listed(ROW), io.StringIO()).splitlines()
    assert len(lines) == 3  # a header, the row, the summary
    assert PATH in lines[1]


def test_a_pipe_gets_the_same_columns_whatever_the_rows_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column that was empty in all rows was left out, and another one stood at its place for `awk`."""
    monkeypatch.setenv("COLUMNS", "200")
    text, every = columns_of(OFFSETS_LIST), (*columns_of(OFFSETS_LIST), *wide_columns_of(OFFSETS_LIST))
    for output, columns in (("text", text), ("wide", every)):
        in_pipe, on_terminal = io.StringIO(), Terminal()
        for stream in (in_pipe, on_terminal):
            render_report(listed(replace(ROW, flags=[])), output=output, stream=stream, color=False)
        assert in_pipe.getvalue().splitlines()[0].split() == [each.header for each in columns]
        assert "FLAGS" not in on_terminal.getvalue()


@pytest.mark.parametrize("color", [True, False])
def test_a_narrow_terminal_gets_blocks(monkeypatch: pytest.MonkeyPatch, color: bool) -> None:
    """At 80 columns seven columns of ten characters each were folded into pieces of words, headers too."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = _text(listed(ROW, ROW), Terminal(), color=color).splitlines()
    assert lines[:8] == [
        "CONNECTOR         customers",
        f'SOURCE-PARTITION  {{"filename":"{PATH}"}}',
        'GLOBAL            {"position":292}',
        "DEDICATED         -",
        'DOCUMENTED        {"position":292}',
        "RUNTIME           -",
        "AGE               -",
        "FLAGS             not_seen_at_runtime",
    ]
    assert lines[8] == ""
    assert lines[9:17] == lines[:8]


def test_a_terminal_that_is_wide_enough_gets_a_table_with_whole_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 140 columns there was a table, too, with the path in two pieces."""
    monkeypatch.setenv("COLUMNS", "180")
    lines = _text(listed(ROW), Terminal(), color=True).splitlines()
    assert lines[0].split() == [column.header for column in columns_of(OFFSETS_LIST)]
    assert max(len(line.rstrip()) for line in lines) <= 180
    assert f'{{"filename":"{PATH}"}}' in lines[1]
    monkeypatch.setenv("COLUMNS", "140")
    lines = _text(listed(ROW), Terminal()).splitlines()
    assert f'SOURCE-PARTITION  {{"filename":"{PATH}"}}' in lines


@pytest.mark.parametrize("width", [70, 100, 130])
def test_no_id_is_broken(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """A URL used to be folded in its middle where the row was a little too wide, and could not be copied."""
    monkeypatch.setenv("COLUMNS", str(width))
    url = "http://connect-worker-1.kafka.svc.cluster.local:8083"
    tasks = [TaskPart(connector="orders-source", task=task) for task in range(9)]
    row = WorkerRow(
        url=url,
        member_id=None,
        leader=True,
        version="4.3.1",
        health="healthy",
        config_offset=1,
        config_lag=0,
        assigned=AssignedPart(connectors=["orders-source"], tasks=tasks),
        mode="enabled",
        evidence=[],
    )
    group = GroupPart(state=None, protocol=None, leader_member_id=None, leader_url=None)
    summary = WorkersSummary(workers=2, modes={})
    report, out = Report(kind=WORKERS_LIST, rows=[row, row], summary=summary, data=GroupData(group=group)), Terminal()
    render_report(report, output="wide", stream=out, color=False)
    text = out.getvalue()
    assert text.count(url) == 2
    assert text.count("orders-source/8") == 2
    assert max(map(len, text.splitlines())) <= width


def test_counts_are_words_not_json() -> None:
    """The summary read `counts: {"write":1,"keep":0}`."""
    summary = {"counts": {"write": 1, "would_fence": 0}, "gates": {"pass": 3, "fail": 1}}
    text = _text(Report(kind="x", summary=summary, data={"undo": "eosctl offsets restore f"}), io.StringIO())
    assert text == "write: 1, would fence: 0, gates: 3 pass, 1 fail\nundo: eosctl offsets restore f\n"


def test_every_report_has_a_declared_kind() -> None:
    """Migration plans were shown with every member of their rows, nested JSON included."""
    source = "".join(path.read_text(encoding="utf-8") for path in HOUSE.rglob("*.py"))
    assert set(re.findall(r'Report\(\s*(?:kind=)?"([a-z-]+)"', source)) <= {"error", "plan", "entry"}


def test_a_migration_that_went_wrong_shows_the_keys_that_differ() -> None:
    assert columns_of(MIGRATED_OTHERWISE)[0].header == "STATUS"
    assert columns_of(OFFSETS_MIGRATE_RESULT)[0].header == "ACTION"


def test_a_renamed_connector_and_a_key_that_is_none_of_connects() -> None:
    row = MigratedRow(
        key="k",
        connector="new",
        renamed_from="old",
        source_partition=None,
        action=KeyAction.WRITE,
        reason="new",
        before=None,
        after=None,
        source=SourcePart(topic="t", partition=0, offset=1),
        target=Place(topic="t", partition=0),
    )
    cells = [column.cell(row) for column in columns_of(OFFSETS_MIGRATE_PLAN)]
    assert cells == ["write", "new (was old)", "k", "-", "-", "new", "t-0"]


@pytest.mark.parametrize("state", ["CompleteCommit", "Empty"])
def test_a_closed_transaction_is_not_open_for_any_time(state: str) -> None:
    """A coordinator keeps the start of the last transaction; it was shown as open since then."""
    owner = Owner(kind="other", connector=None, task=None, application=None)
    row = DescribedRow(transactional_id=TransactionalId("x"), state=state, age_ms=90_000, owner=owner)
    assert "90s" not in _text(Report(kind=TXN_DESCRIBE, rows=[row]), io.StringIO())
    assert "90s" in _text(Report(kind=TXN_DESCRIBE, rows=[replace(row, state="Ongoing")]), io.StringIO())


@pytest.mark.parametrize(
    ("milliseconds", "text"), [(0, "0s"), (119_999, "119s"), (120_000, "2m"), (7_200_000, "2h"), (172_800_000, "2d")]
)
def test_duration(milliseconds: int, text: str) -> None:
    assert duration(milliseconds) == text


def test_json_in_a_cell_cannot_steer_the_terminal() -> None:
    """json.dumps leaves C1 control characters (here: CSI) as they are."""
    assert format_cell({"f": "a\x9b31m"}) == '{"f":"a\\x9b31m"}'


def test_wide_has_more_columns_and_keeps_the_others() -> None:
    lines = _text(listed(ROW), io.StringIO()).splitlines()
    out = io.StringIO()
    render_report(listed(ROW), output="wide", stream=out, color=False)
    wide = out.getvalue().splitlines()
    assert wide[0].startswith(lines[0])
    assert wide[0].split()[8:] == [column.header for column in wide_columns_of(OFFSETS_LIST)]
    assert wide[1].split()[8:] == ["k", "connect-offsets-3@17", *"-----"]


def test_a_summary_leaves_out_counts_of_nothing() -> None:
    """An empty audit log used to read `writes: 0, outcomes: , damaged: 0`."""
    report = Report(kind="history", summary={"writes": 0, "outcomes": {}, "damaged": 0})
    assert _text(report, io.StringIO()).splitlines()[-1] == "writes: 0, damaged: 0"


class Looked(Printed):
    """A summary."""

    looked_at: Annotated[int, "A total.", TOTAL]
    bad: Annotated[int, "A count."]
    known: Annotated[bool, "A fact."]
    unknown: Annotated[int | None, "Null where it was not seen."]
    counts: Annotated[Counts, "By outcome."]
    gates: Annotated[Counts, "By status."]


LOOKED = Kind("looked", "Something that was looked at.", summary=Looked, text=Text(empty="Nothing is bad."))
SILENT = Kind("silent", "The same without a sentence.", summary=FenceSummary)


def _rendered(report: Report, output: str) -> list[str]:
    out = io.StringIO()
    render_report(report, output=output, stream=out, color=False)
    return out.getvalue().splitlines()


def test_zeros_are_in_wide_only_and_what_was_looked_at_is_always_there() -> None:
    """Each summary listed a dozen counters that were 0. What is false, or not known, is none of these."""
    nothing = Looked(looked_at=0, bad=0, known=False, unknown=None, counts={"done": 0}, gates={"pass": 0})
    report = Report(kind=LOOKED, summary=nothing)
    assert _rendered(report, "text") == ["Nothing is bad.", "looked at: 0, known: no, unknown: -"]
    whole = "looked at: 0, bad: 0, known: no, unknown: -, done: 0, gates: 0 pass"
    assert _rendered(report, "wide") == ["Nothing is bad.", whole]
    some = replace(nothing, bad=2, counts={"done": 0, "failed": 1}, gates={"pass": 0, "fail": 3})
    assert _rendered(Report(kind=LOOKED, summary=some), "text")[-1] == (
        "looked at: 0, bad: 2, known: no, unknown: -, failed: 1, gates: 3 fail"
    )


def test_a_report_of_zeros_without_another_word_says_them() -> None:
    none = FenceSummary(ids=0, counts={}, already_fenced=0, live=0)
    assert _rendered(Report(kind=SILENT, summary=none), "text") == ["ids: 0, already fenced: 0, live: 0"]


def test_brief_lines_and_blank_lines_at_the_end() -> None:
    def lines(_report: Report) -> list[str]:
        return ["first", Brief("", whole=["one", "two"]), Brief("both", whole=[]), "", Brief("", whole=["last"])]

    report = Report(kind=Kind("lines", "Lines.", text=Text(columns=(), lines=lines)))
    assert _rendered(report, "text") == ["first", "both"]
    assert _rendered(report, "wide") == ["first", "one", "two", "", "last"]


def test_wide_characters_take_two_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns were aligned by the number of characters, and stood askew below a name in Chinese."""
    monkeypatch.setenv("COLUMNS", "180")
    report = listed(ROW, replace(ROW, connector="客户的订单"))
    for stream in (io.StringIO(), Terminal()):
        header, *rows, _summary = _text(report, stream).splitlines()
        at = header.index("SOURCE-PARTITION")
        assert {cell_len(row[: row.index("{")]) for row in rows} == {at}


@pytest.mark.parametrize("width", [40, 60])
def test_a_line_of_wide_characters_is_folded_by_its_cells(width: int) -> None:
    folded = fold("warning  客户 " * 20, width)
    assert max(map(cell_len, folded)) <= width
    assert "".join(folded).replace(" ", "") == "warning客户" * 20


def test_a_block_leaves_out_an_optional_column_that_is_empty_in_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    other = replace(ROW, flags=[], source_partition={"filename": PATH + "2"})
    lines = _text(listed(other, ROW), Terminal()).splitlines()
    assert [line.split()[0] for line in lines[:-1] if line].count("FLAGS") == 1


def test_a_path_stays_behind_its_label() -> None:
    """`backup:` stood alone on a line, and the path, which was too long anyway, on the next one."""
    line = f"backup: {PATH}"
    assert fold(line, 40) == [line]


def test_the_number_of_rows_that_are_all_there_is_not_said_again() -> None:
    """A table of one id ended in `rows: 1`."""
    owner = Owner(kind="other", connector=None, task=None, application=None)
    row = DescribedRow(transactional_id=TransactionalId("x"), state="Empty", owner=owner)
    for rows, is_said in ((1, False), (2, True)):
        text = _text(Report(kind=TXN_DESCRIBE, rows=[row], summary=RowsSummary(rows=rows)), io.StringIO())
        assert (f"rows: {rows}" in text) is is_said


class Right(Printed):
    """A row of ids and a sentence."""

    role: Annotated[str, "A word."]
    right: Annotated[str, "An id."]
    resource: Annotated[str, "A longer id."]
    note: Annotated[str, "A sentence."]


RIGHTS = Kind("rights", "Rights.", row=Right, text=Text(columns=("role", "right", "resource", "note")))


def test_what_all_rows_share_stands_above_a_table_that_is_too_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long name, the same in each row, made a block of every row: hundreds of lines for a connector of many keys."""
    monkeypatch.setenv("COLUMNS", "100")
    name = "inventory-service-postgres-cdc-source-eu-central-1-production"
    rows = [replace(ROW, connector=name, source_partition={"table": f"t{number}"}, flags=[]) for number in range(9)]
    lines = _text(listed(*rows), Terminal()).splitlines()
    assert lines[0].split() == ["CONNECTOR", name]
    assert lines[lines.index("") + 1].split()[0] == "SOURCE-PARTITION"
    assert len(lines) < 9 * 2
    alone = _text(listed(rows[0]), Terminal()).splitlines()
    assert alone[1] == 'SOURCE-PARTITION  {"table":"t0"}'  # a block: one row has nothing to share


def test_many_rows_are_folded_tighter_before_each_is_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """The 29 rights of `acls generate` were 174 lines at 80 columns, where a table lacked a single one."""
    monkeypatch.setenv("COLUMNS", "80")
    note = "without it the task FAILS before its first transaction"
    rows = [
        Right(
            role="producer", right="DESCRIBE_CONFIGS", resource="a-topic-that-has-a-long-name-" + end, note=note + end
        )
        for end in ("first", "other")
    ]
    lines = _text(Report(kind=RIGHTS, rows=rows), Terminal()).splitlines()
    assert lines[lines.index("") + 1].split() == ["ROLE", "RESOURCE", "NOTE"]  # no more than has to go
    rows[1] = replace(rows[1], role="consumer", right="DESCRIBE")
    assert _text(Report(kind=RIGHTS, rows=rows), Terminal()).split()[:4] == ["ROLE", "RIGHT", "RESOURCE", "NOTE"]
    alone = _text(Report(kind=RIGHTS, rows=rows[:1]), Terminal()).splitlines()
    assert alone[3] == "NOTE      " + rows[0].note


def test_what_the_shown_rows_alone_share_stays_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the table it read as if it were true of the rows that are not shown."""
    monkeypatch.setenv("COLUMNS", "100")
    long, longer = f'{{"a":"{PATH}"}}', f'{{"file":"{PATH}","file2":"{PATH}"}}'
    rows = [Right(role="r", right=f"right-{each}", resource=longer, note=long) for each in range(3)]
    for last, above in ((longer, "RESOURCE"), ("other", "NOTE")):
        out = Terminal()
        report = Report(kind=RIGHTS, rows=[*rows, replace(rows[0], resource=last)])
        render_report(report, output="text", stream=out, color=False, most_rows=3)
        lines = out.getvalue().splitlines()
        assert [line.split()[0] for line in lines[: lines.index("")] if line[0] != " "] == [above]
        assert max(map(len, lines)) <= 100


def test_a_path_in_the_only_row_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """`offsets snapshot` broke the name of its file at 120 columns, where a block has room for it."""
    monkeypatch.setenv("COLUMNS", "110")
    path = PATH + "/" + PATH
    row = Right(role="written", right="2023-11-14T22:13:20.000Z", resource=path, note="none")
    assert path in _text(Report(kind=RIGHTS, rows=[row]), Terminal())
    several = _text(Report(kind=RIGHTS, rows=[row, replace(row, resource=path + "2")]), Terminal())
    assert several.split()[:4] == ["ROLE", "RIGHT", "RESOURCE", "NOTE"]


@pytest.mark.parametrize("columns", ["80", "0", "-5", "many"])
def test_problems_are_folded_on_a_terminal(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    """Warnings of 150 characters were broken by the terminal, inside words."""
    monkeypatch.setenv("COLUMNS", columns)
    report = Report(kind="x", problems=[Problem(EosctlError.code, "some words " * 15, "others " * 20)])
    on_terminal, in_pipe = Terminal(), io.StringIO()
    render_problems(report, stream=on_terminal)
    render_problems(report, stream=in_pipe)
    assert max(map(len, on_terminal.getvalue().splitlines())) <= 80
    assert len(in_pipe.getvalue().splitlines()) == 2
    assert on_terminal.getvalue().split() == in_pipe.getvalue().split()


def test_a_problem_is_said_once() -> None:
    """`profile check` said of the cluster and of the group that the same broker refuses connections."""
    out, problem = io.StringIO(), Problem(EosctlError.code, "no answer", "Look.")
    render_problems(Report(kind="x", problems=[problem, problem]), stream=out)
    assert out.getvalue().count("no answer") == 1
