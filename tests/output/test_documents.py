"""JSON, YAML and NDJSON: the same facts, one document or one row a line, and no row kept."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, overload

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from eosctl.codes import error
from eosctl.errors import EosctlError, ExitCode
from eosctl.output import render_report
from eosctl.output.documents import _is_exact
from eosctl.output.rows import Printed
from eosctl.report import Problem, Report, Row, plain

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
LIKE_YAML = [
    "no",
    "1e3",
    "0x1F",
    "012",
    "1:30",
    "=",
    "~",
    "- a",
    "a: b",
    "\x85",
    "\ufeff",
    "2026-01-02",
    " x ",
    "a\nb ",
]


def _printed(report: Report, output: str) -> str:
    out = io.StringIO()
    render_report(report, output=output, stream=out, color=False)
    return out.getvalue()


@given(st.lists(st.dictionaries(st.text(), VALUES, max_size=4), max_size=3), VALUES)
def test_yaml_reads_as_json_does(rows: list[Row], member: object) -> None:
    report = Report(kind="x", rows=rows, data={"member": member})
    assert yaml.safe_load(_printed(report, "yaml")) == json.loads(_printed(report, "json"))


@pytest.mark.parametrize("text", LIKE_YAML)
def test_text_that_looks_like_yaml_stays_text(text: str) -> None:
    report = Report(kind="x", rows=[{text: text}], target={"group_id": text})
    assert yaml.safe_load(_printed(report, "yaml")) == json.loads(_printed(report, "json"))


def test_yaml_names_no_anchors_and_no_python_types() -> None:
    same = {"state": "Empty"}
    report = Report(kind="x", rows=[{"before": same, "after": same, "pair": ("a", ExitCode.PARTIAL)}])
    text = _printed(report, "yaml")
    assert "&" not in text
    assert "!" not in text
    assert yaml.safe_load(text)["data"]["rows"] == [{"before": same, "after": same, "pair": ["a", 7]}]


def test_ndjson_is_the_rows_alone() -> None:
    rows: list[Row] = [{"id": "é\n"}, {"id": None}]
    lines = _printed(Report(kind="x", rows=rows, summary={"n": 2}, problems=[Problem(EosctlError.code, "m")]), "ndjson")
    assert [json.loads(line) for line in lines.splitlines()] == rows
    assert (
        _printed(Report(kind="error", problems=[Problem(EosctlError.code, "m")], exit_code=ExitCode.FAILED), "ndjson")
        == ""
    )


class _Made(Sequence[Row]):
    """Rows that are made when they are asked for."""

    def __len__(self) -> int:
        return 20_000

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: Any) -> Any:
        raise AssertionError("a stream is read from its beginning to its end")

    def __iter__(self) -> Iterator[Row]:
        return ({"number": number, "text": "x" * 100} for number in range(len(self)))


class _Sink(io.TextIOBase):
    """A stream that only counts."""

    lines = 0

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.lines += text.count("\n")
        return len(text)


@pytest.mark.parametrize(("output", "extra"), [("ndjson", 0), ("json", 13)])
def test_rows_stream_in_constant_memory(output: str, extra: int) -> None:
    sink = _Sink()
    tracemalloc.start()
    try:
        render_report(Report(kind="x", rows=_Made()), output=output, stream=sink, color=False)  # type: ignore[arg-type]
        _now, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sink.lines == 20_000 + extra
    assert peak_bytes < 1_000_000  # the rows together: 3 MB


class Exact(Printed, kw_only=True):
    """A row that msgspec writes as `json` does."""

    text: Annotated[str | None, "A text."]
    more: Annotated[dict[str, list[int]], "Numbers."]
    seldom: Annotated[bool, "Not always there."] | UnsetType = UNSET


class Inexact(Printed):
    """A row that it does not: 1e22 is spelled in two ways, and what is no number is null."""

    value: Annotated[object, "Anything."]
    part: Annotated[float, "A fraction."]


_TEXTS = st.text(st.characters(exclude_categories=()))
_ROWS = st.builds(
    Exact,
    text=_TEXTS | st.none(),
    more=st.dictionaries(_TEXTS, st.lists(st.integers(-(10**30), 10**30))),
    seldom=st.booleans() | st.just(UNSET),
) | st.builds(Inexact, value=st.floats() | _TEXTS, part=st.floats())


@given(row=_ROWS)
def test_many_rows_are_written_as_few_are(row: Printed) -> None:
    """Of many rows msgspec makes the JSON, which differs from json's where a row may hold a fraction."""
    few, many = io.StringIO(), io.StringIO()
    render_report(Report(kind="x", rows=[row]), output="ndjson", stream=few, color=False)
    render_report(Report(kind="x", rows=[row] * 101), output="ndjson", stream=many, color=False)
    assert many.getvalue() == few.getvalue() * 101
    line = few.getvalue().removesuffix("\n")
    assert line.isprintable()
    assert json.dumps(json.loads(line)) == json.dumps(json.loads(json.dumps(plain(row))))


def test_text_of_a_class_of_its_own_is_text_in_many_rows() -> None:
    """A declared code is more than text, which msgspec refuses: from row 101 on the command ended with a traceback."""
    row = Exact(text=error("a_code", "It means something."), more={})
    stream = io.StringIO()
    render_report(Report(kind="x", rows=[row] * 101), output="ndjson", stream=stream, color=False)
    assert stream.getvalue() == '{"text": "a_code", "more": {}}\n' * 101


def test_only_rows_without_fractions_are_written_by_msgspec() -> None:
    assert (_is_exact(Exact), _is_exact(Inexact), _is_exact(dict)) == (True, False, False)
