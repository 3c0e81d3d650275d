"""The envelope is a contract: its keys and its status are pinned here."""

from __future__ import annotations

import io
import json
from typing import Annotated

import pytest
from msgspec import UNSET, UnsetType

from eosctl.codes import Code, error, finding, gate, warning
from eosctl.core.wording import json_bytes
from eosctl.errors import EosctlError, ExitCode, RefusedError
from eosctl.foreign import printable
from eosctl.output import render_problems, render_report
from eosctl.output.cells import Column, format_cell
from eosctl.output.rows import Printed
from eosctl.output.text import plain_table
from eosctl.report import Problem, Report, Row, error_report, plain


def test_envelope_keys() -> None:
    report = Report(
        kind="fence-plan",
        rows=[{"a": 1}],
        summary={"n": 1},
        data={"backup": "x"},
        target={"group_id": "g"},
        problems=[Problem(warning("c", "It is so."), "m", "h")],
        exit_code=ExitCode.PARTIAL,
    )
    assert report.envelope() == {
        "kind": "fence-plan",
        "version": 1,
        "status": "partial",
        "exit_code": 7,
        "target": {"group_id": "g"},
        "data": {"rows": [{"a": 1}], "summary": {"n": 1}, "backup": "x"},
        "errors": [{"code": "c", "message": "m", "hint": "h", "severity": "warning"}],
    }


@pytest.mark.parametrize(
    ("exit_code", "status"),
    [
        (0, "ok"),
        (3, "findings"),
        (7, "partial"),
        (6, "refused"),
        (1, "error"),
        (4, "error"),
        (5, "error"),
        (130, "error"),
    ],
)
def test_status_follows_the_exit_code(exit_code: int, status: str) -> None:
    assert Report(kind="x", exit_code=ExitCode(exit_code)).status == status


@pytest.mark.parametrize(
    ("code", "severity"),
    [
        (warning("c", "m"), "warning"),
        (error("c", "m"), "error"),
        (finding("c", "m"), "error"),
        (gate("c", "m", "n"), "error"),
    ],
)
def test_a_problem_is_as_bad_as_its_code(code: Code, severity: str) -> None:
    """A hundred constructions repeated it; nothing held them to what the code was declared with."""
    problem = Problem(code, "m")
    assert (problem.severity, problem.is_unseen) == (severity, severity == "error")
    assert (problem.as_warning().severity, problem.as_warning().is_unseen) == ("warning", False)


def test_json_is_one_document_also_for_errors() -> None:
    out = io.StringIO()
    render_report(error_report(RefusedError("no", hint="so")), output="json", stream=out, color=False)
    document = json.loads(out.getvalue())
    assert (document["kind"], document["status"], document["exit_code"]) == ("error", "refused", 6)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_json_has_a_row_per_line_and_is_the_envelope(count: int) -> None:
    """A quarter of the time of a fence of 100,000 ids went into one indented document."""
    rows: list[Row] = [{"id": f'"rows": [] é {number}', "n": None} for number in range(count)]
    report = Report(kind="x", rows=rows, summary={"rows": []}, target={"group_id": '"rows": []'})
    out = io.StringIO()
    render_report(report, output="json", stream=out, color=False)
    assert json.loads(out.getvalue()) == report.envelope()
    assert sum(line.startswith('      {"id"') for line in out.getvalue().splitlines()) == count


def test_what_json_has_not_is_named_by_its_type() -> None:
    with pytest.raises(NotImplementedError, match="<class 'object'> is nothing that JSON has"):
        plain(object())


def test_bytes_that_are_not_text_are_base64() -> None:
    assert json_bytes(b"\xff\x00") == {"base64": "/wA="}
    assert json_bytes("é".encode()) == "é"
    assert json_bytes(None) is None


def test_plain_table_cuts_nothing_and_pads_no_last_column() -> None:
    columns = (Column("NAME", "name"), Column("EPOCH", "before.epoch"))
    rows: list[Row] = [{"name": "x" * 300, "before": {"epoch": 2}}, {"name": "y", "before": None}]
    assert list(plain_table(columns, rows)) == [
        "NAME" + " " * 296 + "  EPOCH",
        "x" * 300 + "  2",
        "y" + " " * 299 + "  -",
    ]


@pytest.mark.parametrize(
    ("value", "cell"),
    [(None, "-"), (True, "yes"), (False, "no"), (0, "0"), ([], "-"), (["a", 1], "a, 1"), ({"b": 1}, '{"b":1}')],
)
def test_cells(value: object, cell: str) -> None:
    assert format_cell(value) == cell


def test_a_cell_is_not_that_of_an_equal_value_of_another_type() -> None:
    values: list[object] = [None, True, True, 1, 1, 1.0, [], [], "a", False, 0, None]
    assert Column("N", "n").cells([{"n": value} for value in values]) == [format_cell(value) for value in values]


def test_names_cannot_steer_the_terminal() -> None:
    """A connector name with an escape sequence was printed as it is."""
    assert printable("a\x1b[31mb\nc") == "a\\x1b[31mb\\nc"
    out = io.StringIO()
    render_problems(Report(kind="x", problems=[Problem(EosctlError.code, "bad \x1b[2J name")]), stream=out)
    assert "\x1b" not in out.getvalue()


class _Data(Printed, kw_only=True):
    """What a report has beside its rows."""

    undo: Annotated[str | None, "The command."] | UnsetType = UNSET
    topics: Annotated[list[str], "Topics."]


@pytest.mark.parametrize(
    ("data", "undo"),
    [
        (_Data(topics=["t"]), None),
        (_Data(topics=[], undo="eosctl x"), "eosctl x"),
        ({"undo": ""}, ""),
        ({}, None),
    ],
)
def test_a_member_of_other_data_is_found_in_reports_of_any_kind(data: object, undo: str | None) -> None:
    assert Report("x", data=data).datum("undo") == undo
    assert Report("x", data=data).datum("nosuch") is None
