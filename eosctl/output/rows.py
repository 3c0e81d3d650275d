"""Declares rows: their JSON, schema, columns and descriptions are all derived from one class.

A feature declares in its `rows.py` what it prints, and nothing else says it again:

    class FenceRow(Printed):
        transactional_id: Annotated[str, "The transactional id."]
        before: Annotated[DescribedState | None, "The id before it was fenced; null where no coordinator knows it."]
        note: Annotated[str, "Left out of JSON where it is UNSET."] | UnsetType = UNSET

        def open_for(self) -> str | None:
            "Return how long its transaction has been open."

    FENCE_PLAN, FENCE_RESULT = plan_and_result(
        "fence",
        "The ids that would be fenced.",
        "The ids that were fenced, and those that were not.",
        row=FenceRow,
        summary=FenceSummary,
        text=Text(columns=("transactional_id", "before.state", "open_for"), wide=("live.worker",)),
    )

    Report(kind=FENCE_PLAN, rows=[FenceRow(...)], summary=FenceSummary(...))

* **JSON** has the fields in their order, nested classes as objects; a field that is UNSET is left out.
* **The schema** follows from the types: `Literal` or an enumeration for one of several words, `X | None`, lists, dicts,
  nested classes, `BytesText`, `Time`; the string in `Annotated` is the description. `Members` names what a dict has.
* **A column** is a path: of fields, of members of a dict, or ending in a method, which may read several fields; its
  docstring, without "Return", is the description then. The header is the last name in upper case, or that of `Header`.
  A column with a trailing `?` is left out on a terminal if it is empty in every row.
  `ShownAs` shows a field in another way than JSON does; a nested class with a method `cell` is shown by that.
* **Closing lines** are a function of the report: `report.rows_of(FenceRow)` and the like give it its types. A `Brief`
  line is another one in `-o wide`. `summary_lines` leaves out what is 0, but for numbers that are marked `TOTAL`.

To add a column: a field (or a method) of the row, and its name among the `columns` of the kind's text.

The columns of a kind's text, with their descriptions, are derived from its row's types, whatever the kind. Parts of
rows that several features print are here, too.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, Union, cast, dataclass_transform, get_args, get_origin

import msgspec
from msgspec import UNSET, Struct, UnsetType

from eosctl.core.findings import Finding, is_unseen
from eosctl.foreign import printable
from eosctl.output.cells import Column, summary_lines
from eosctl.report import Problem, Report

Method = TypeVar("Method", bound=Callable[..., object])
Lines = Callable[[Report], Iterable[str]]


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Printed(msgspec.Struct, frozen=True):
    """A row, a part of one, a summary, or a document's further data; constructed with keyword arguments.

    A class in which a member with a default stands before one without says `kw_only=True`. No metaclass of ours makes
    that the rule, for then making a row takes three times as long.
    """


class Header(msgspec.Struct, frozen=True):
    """The header of a column, if it is not the name: in a field's annotation, or as the decorator of a method."""

    text: str

    def __call__(self, method: Method) -> Method:
        """Set the header of the method's column."""
        method.header = self.text  # type: ignore[attr-defined]  # functions may have any attribute
        return method


class ShownAs(msgspec.Struct, frozen=True):
    """The format of a field in a cell, if it differs from JSON; null is not passed to it."""

    function: Callable[[Any], object]


class Schema(msgspec.Struct, eq=False):
    """The JSON Schema of a type whose Python type does not show it."""

    members: dict[str, object]


class Members(msgspec.Struct, eq=False):
    """The names that a dict always has, besides others: `Annotated[dict[str, Cell], Members(("global",))]`.

    As a dict, the names with their types where these differ from those of the others.
    """

    named: tuple[str, ...] | dict[str, object]


Time = Annotated[str, Schema({"type": "string", "format": "date-time"})]
"""Text in RFC 3339."""
_BASE64: dict[str, object] = {
    "type": "object",
    "properties": {"base64": {"type": "string", "contentEncoding": "base64"}},
    "required": ["base64"],
}
BytesText = Annotated[str | dict[str, str], Schema({"anyOf": [{"type": "string"}, _BASE64]})]
"""Bytes: text where they are UTF-8, else `{"base64": "…"}` (`report.json_bytes`)."""


class Nothing(Printed):
    """A summary, or other data, without members."""


class Text(msgspec.Struct, frozen=True, kw_only=True):
    """The text layout of a kind.

    `columns` are paths into the row, and those of `-o wide` come after them; None is every field of the row. `lines`
    close the text, `wide_lines` that of `-o wide`; without `prose` they are never folded. `empty` stands in for a table
    without rows. Of more than `most_rows` rows only the first ones are shown; the other formats always have them all.
    """

    columns: tuple[str, ...] | None = None
    wide: tuple[str, ...] = ()
    lines: Lines = summary_lines
    wide_lines: Lines | None = None
    empty: str = ""
    most_rows: int | None = None
    prose: bool = True


_PLAIN = Text()


class Kind(str):
    """A kind of document: its name in JSON, its description, the classes of its parts and its text.

    `row` may be a union of classes; `object` is anything.
    """

    __slots__ = ("data", "is_variant", "row", "summary", "text", "what")
    what: str
    row: Any
    summary: Any
    data: Any
    text: Text
    is_variant: bool

    def __new__(
        cls,
        name: str,
        what: str,
        *,
        row: Any = object,
        summary: Any = Nothing,
        data: Any = Nothing,
        text: Text = _PLAIN,
    ) -> Kind:
        kind = super().__new__(cls, name)
        kind.what, kind.row, kind.summary, kind.data, kind.text, kind.is_variant = what, row, summary, data, text, False
        return kind

    def shown_as(self, text: Text) -> Kind:
        """Return the same kind of document with another text layout."""
        kind = Kind(self, self.what, row=self.row, summary=self.summary, data=self.data, text=text)
        kind.is_variant = True
        return kind


def plan_and_result(
    name: str, planned: str, done: str, *, result: Mapping[str, Any] | None = None, **parts: Any
) -> tuple[Kind, Kind]:
    """Return the kinds of a plan and of its result: `NAME-plan` and `NAME-result`.

    Both are made of the same `parts`, as `Kind` takes them, but for those that the `result` has otherwise.
    """
    return Kind(f"{name}-plan", planned, **parts), Kind(f"{name}-result", done, **{**parts, **(result or {})})


class Field(Struct, frozen=True):
    """The declaration of a field or a method of a row: its type (None for a method), description, header and format."""

    type: Any
    words: str = ""
    header: str | None = None
    shown_as: Callable[[Any], object] | None = None


def columns_of(kind: Kind) -> tuple[Column, ...]:
    """Return the columns of the kind's text; by default every field of the row."""
    named = kind.text.columns
    paths = fields_of(classes_in(kind.row)[0]) if named is None else named
    return tuple(_column(kind, path) for path in paths)


def wide_columns_of(kind: Kind) -> tuple[Column, ...]:
    """Return the further columns of `-o wide`."""
    return tuple(_column(kind, path) for path in kind.text.wide)


def words_of_columns(kind: Kind) -> Iterator[tuple[str, str]]:
    """Yield (header, description) of every column of the kind's text, wide ones included."""
    named = kind.text.columns
    paths = fields_of(classes_in(kind.row)[0]) if named is None else named
    for path in (*paths, *kind.text.wide):
        field = field_at(kind.row, path.removesuffix("?"))
        yield _header(path.removesuffix("?"), field), field.words


def _column(kind: Kind, path: str) -> Column:
    found = path.removesuffix("?")
    field = field_at(kind.row, found)
    plain = field.shown_as is None and field.type is not None and "." not in found  # which `Column` reads by itself
    source = found if plain else _reader(found.split("."), field.shown_as)
    return Column(_header(found, field), source, optional=found != path)


def _header(path: str, field: Field) -> str:
    return field.header or path.rpartition(".")[2].upper().replace("_", "-")


def _reader(steps: Sequence[str], shown_as: Callable[[Any], object] | None) -> Callable[[Any], object]:
    """Return a function from a row to the member at a path; it returns None if any step is missing."""

    def read(row: Any) -> object:
        value = row
        for step in steps:
            method = getattr(type(value), step, None)
            if isinstance(method, types.FunctionType):
                value = method(value)
            else:
                value = value.get(step) if isinstance(value, Mapping) else getattr(value, step)
            if value is None or value is msgspec.UNSET:
                return None
        return value if shown_as is None else shown_as(value)

    return read


def field_at(row: Any, path: str) -> Field:
    """Return the field or the method at a dotted path of a row's class, or classes; raise LookupError with the path."""
    found = Field(row)
    for step in path.split("."):
        inside = _inside(found.type, step, found)
        if inside is None:
            raise LookupError(f"{row} has nothing at {path}")
        found = inside
    return found


def _inside(annotation: Any, name: str, above: Field) -> Field | None:
    """Return the member's declaration in the first class, of those that a type allows, that has it."""
    found = (_member(each, name, above) for each in _choices(annotation, annotated=True))
    return next((each for each in found if each is not None), None)


def _member(owner: Any, name: str, above: Field) -> Field | None:
    """Return a field, a method, or a member of a dict; the latter has the dict's description if it lacks its own."""
    if get_origin(owner) is Annotated:
        named = [mark.named for mark in owner.__metadata__ if isinstance(mark, Members)]
        if named and isinstance(named[0], dict) and name in named[0]:
            return _field(named[0][name])
        return _inside(owner.__origin__, name, above)
    if get_origin(owner) in (dict, Mapping):
        return Field(get_args(owner)[1], above.words)
    if not isinstance(owner, type):
        return None
    method = getattr(owner, name, None)
    if isinstance(method, types.FunctionType):
        words = " ".join((method.__doc__ or "").split()).removeprefix("Return ")
        return Field(None, words[:1].upper() + words[1:], getattr(method, "header", None))
    return fields_of(owner).get(name)


@functools.cache
def fields_of(owner: Any) -> Mapping[str, Field]:
    """Return the fields of a row's class, in order, with their annotations."""
    if not (isinstance(owner, type) and issubclass(owner, msgspec.Struct)):
        return {}
    hints = annotations_of(owner)
    return {name: _field(hints[name]) for name in owner.__struct_fields__}


def annotations_of(owner: type) -> Mapping[str, Any]:
    """Return the annotations of a class and its bases; `typing.get_type_hints` would also look into each of them."""
    return {name: each for above in reversed(owner.__mro__) for name, each in _own_annotations(above).items()}


def _own_annotations(owner: type) -> Mapping[str, Any]:
    return inspect.get_annotations(owner, eval_str=True) if issubclass(owner, msgspec.Struct) else {}


def _field(annotation: Any) -> Field:
    marks = [mark for each in _choices(annotation, annotated=True) for mark in getattr(each, "__metadata__", ())]
    words = next((mark for mark in marks if isinstance(mark, str)), "")
    header = next((mark.text for mark in marks if isinstance(mark, Header)), None)
    shown_as = next((mark.function for mark in marks if isinstance(mark, ShownAs)), None)
    return Field(annotation, words, header, shown_as)


def classes_in(annotation: Any) -> list[Any]:
    """Return the classes that a type allows, without null."""
    return [each for each in _choices(annotation) if each is not type(None)]


def _choices(annotation: Any, *, annotated: bool = False) -> list[Any]:
    """Return the members of a union, else the type itself; with `annotated`, keep the annotations."""
    found = [annotation]
    while True:
        opened = [part for each in found for part in _opened(each, annotated=annotated)]
        if opened == found:
            return found
        found = opened


def _opened(annotation: Any, *, annotated: bool) -> Sequence[Any]:
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return get_args(annotation)
    if origin is Annotated and not annotated:
        return [annotation.__origin__]
    return [annotation]


Counts = dict[str, int]
"""A number per name."""
Severity = Literal["error", "warning", "info"]


class Place(Printed):
    """A partition of a topic."""

    topic: Annotated[str, "Its topic."]
    partition: Annotated[int, "Its number."]

    def cell(self) -> str:
        """Format the partition as Kafka does."""
        return f"{self.topic}-{self.partition}"


class KafkaError(Printed):
    """The error that a broker answered with."""

    code: Annotated[str, "Kafka's name of the error."]
    kafka_code: Annotated[int, "Kafka's number of the error."]
    message: Annotated[str, "Why it failed.", Header("ERROR")]


FindingCode = Annotated[str, "The code of the finding; `eosctl explain CODE` says what it means."]
FindingSeverity = Annotated[Severity, "How bad it is."]
FindingSubject = Annotated[str, "What it is about."]
FindingMessage = Annotated[str, "What is wrong."]
FindingEvidence = Annotated[dict[str, object], "What it was found by."]
FindingFix = Annotated[str, "What to do about it."]


class FindingPart(Printed, kw_only=True):
    """A finding inside a row; without a subject if the row itself is the subject."""

    code: FindingCode
    severity: FindingSeverity
    subject: FindingSubject | UnsetType = UNSET
    message: FindingMessage
    evidence: FindingEvidence | UnsetType = UNSET
    fix: FindingFix


class FindingRow(Printed):
    """A finding as a row of its own."""

    code: FindingCode
    severity: FindingSeverity
    subject: FindingSubject
    message: FindingMessage
    evidence: FindingEvidence
    fix: FindingFix

    def headline(self) -> str:
        """Format code, subject and message in one line."""
        return f"{self.code}  {printable(about_subject(self.subject, self.message))}"


class UnseenPart(Printed):
    """Something that the check promises to judge and could not see."""

    what: Annotated[str, "The code that says what it is."]
    subject: Annotated[str, "What it is of; empty for the whole."]
    why: Annotated[str, "Why it could not be seen."]
    would_show: Annotated[str, "The right, or the option, that would show it."]


UnseenParts = Annotated[list[UnseenPart], "What could not be seen: where there is some, the exit code is not 0."]


def unseen_parts(findings: Iterable[Finding], problems: Iterable[Problem] = ()) -> list[UnseenPart]:
    """Return what could not be seen, each once: by findings first, then by problems."""
    unseen = [(str(each.code), each.subject, each.message, each.fix) for each in findings if is_unseen(each)]
    unseen += [(str(each.code), "", each.message, each.hint or each.code.next) for each in problems if each.is_unseen]
    return [
        UnseenPart(what=what, subject=subject, why=why, would_show=would_show)
        for what, subject, why, would_show in dict.fromkeys(unseen)
    ]


def about_subject(subject: str, message: str) -> str:
    """Return the message; prefix the subject unless the message names it."""
    return message if subject in message else f"{subject}: {message}"


def finding_row(finding: Finding) -> FindingRow:
    """Convert a finding to a row of its own."""
    return FindingRow(
        code=str(finding.code),
        severity=cast("Severity", finding.severity),
        subject=finding.subject,
        message=finding.message,
        evidence=dict(finding.evidence),
        fix=finding.fix,
    )
