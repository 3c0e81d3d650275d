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
  A column with a trailing `?` is left out if it is empty in every row. `ShownAs` shows a field in another way than
  JSON does; a nested class with a method `cell` is shown by that.
* **Closing lines** are a function of the report: `report.rows_of(FenceRow)` and the like give it its types.

To add a column: a field (or a method) of the row, and its name among the `columns` of the kind's text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, TypeVar, dataclass_transform

import msgspec

from eosctl.output.cells import summary_lines
from eosctl.report import Report

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
