"""What follows from the declaration of a row: JSON, its schema, columns and their words."""

from __future__ import annotations

import io
from typing import Annotated, Any, Literal

import pytest
from jsonschema import Draft202012Validator
from msgspec import UNSET, UnsetType

from eosctl.core.wording import json_bytes
from eosctl.output import render_report
from eosctl.output.json_schema import schema_of_type
from eosctl.output.rows import (
    BytesText,
    Header,
    Kind,
    Members,
    Printed,
    ShownAs,
    Text,
    Time,
    columns_of,
    field_at,
    words_of_columns,
)
from eosctl.report import Report, plain


class Inner(Printed):
    """A part of a row."""

    size: Annotated[int, "How large it is."]

    def cell(self) -> str:
        """As text."""
        return f"<{self.size}>"


class Sample(Printed, kw_only=True):
    """A row with everything that rows may have."""

    name: Annotated[str, "What it is called."]
    word: Annotated[Literal["b", "a"] | None, "One of two.", Header("CHOICE")]
    note: Annotated[str, "Said seldom."] | UnsetType = UNSET
    inner: Annotated[Inner | None, "What it holds."]
    others: Annotated[list[Inner], "What it holds besides."]
    raw: Annotated[BytesText | None, "Its bytes."]
    at: Annotated[Time | None, "When it was."]
    half: Annotated[float, "Half of it.", ShownAs("{:.1f}".format)]
    stores: Annotated[dict[str, int | None], "By store.", Members(("global",))]

    @Header("BOTH")
    def name_and_word(self) -> str:
        """Name and
        word."""
        return f"{self.name}/{self.word}"


KIND = Kind(
    "sample",
    "Samples.",
    row=Sample,
    text=Text(
        columns=("name_and_word", "word", "inner", "inner.size", "others", "note?", "half", "stores.global"),
        wide=("at",),
    ),
)
ROW = Sample(
    name="n",
    word="a",
    inner=Inner(size=1),
    others=[Inner(size=2), Inner(size=3)],
    raw=json_bytes(b"\xff"),
    at=None,
    half=0.25,
    stores={"global": 7},
)


def printed(*rows: Sample, output: str = "text", kind: Kind = KIND) -> str:
    stream = io.StringIO()
    render_report(Report(kind=kind, rows=rows), output=output, stream=stream, color=False)
    return stream.getvalue()


def test_json_has_the_members_in_their_order_and_none_that_is_unset() -> None:
    assert printed(ROW, output="ndjson") == (
        '{"name": "n", "word": "a", "inner": {"size": 1}, "others": [{"size": 2}, {"size": 3}], '
        '"raw": {"base64": "/w=="}, "at": null, "half": 0.25, "stores": {"global": 7}}\n'
    )


def test_text_has_the_columns() -> None:
    assert printed(ROW).splitlines() == [
        "BOTH  CHOICE  INNER  SIZE  OTHERS    NOTE  HALF  GLOBAL",
        "n/a   a       <1>    1     <2>, <3>  -     0.2   7",
    ]


def test_wide_has_more() -> None:
    row = Sample(name="m", word=None, note="x", inner=None, others=[], raw=None, at="t", half=1, stores={})
    lines = printed(ROW, row, output="wide").splitlines()
    assert lines[0].split() == ["BOTH", "CHOICE", "INNER", "SIZE", "OTHERS", "NOTE", "HALF", "GLOBAL", "AT"]
    assert [line.split() for line in lines[1:]] == [
        ["n/a", "a", "<1>", "1", "<2>,", "<3>", "-", "0.2", "7", "-"],
        ["m/None", "-", "-", "-", "-", "x", "1.0", "-", "t"],
    ]


def test_without_columns_every_field_is_one() -> None:
    assert [each.header for each in columns_of(Kind("k", "K.", row=Inner))] == ["SIZE"]
    assert printed(ROW, kind=KIND.shown_as(Text(columns=("name",)))) == "NAME\nn\n"
    assert KIND.shown_as(Text()) == "sample"


def test_words_stand_at_the_field_or_in_the_method() -> None:
    assert dict(words_of_columns(KIND)) == {
        "BOTH": "Name and word.",
        "CHOICE": "One of two.",
        "INNER": "What it holds.",
        "SIZE": "How large it is.",
        "OTHERS": "What it holds besides.",
        "NOTE": "Said seldom.",
        "HALF": "Half of it.",
        "GLOBAL": "By store.",
        "AT": "When it was.",
    }


@pytest.mark.parametrize("path", ["nosuch", "inner.nosuch", "name.size", "name_and_word.size"])
def test_a_path_that_leads_nowhere_is_an_error(path: str) -> None:
    with pytest.raises(LookupError, match=path):
        field_at(Sample, path)


def test_the_schema_follows_from_the_types() -> None:
    schema: Any = schema_of_type(Sample)
    validator = Draft202012Validator(schema)
    assert validator.is_valid(plain(ROW))
    assert "note" in schema["properties"]
    assert "note" not in schema["required"]
    assert schema["properties"]["word"] == {
        "anyOf": [{"enum": ["a", "b"]}, {"type": "null"}],
        "description": "One of two.",
    }
    for name, wrong in [
        ("name", 1),
        ("word", "c"),
        ("raw", {"base": 1}),
        ("stores", {}),
        ("others", [{}]),
        ("half", ""),
    ]:
        assert not validator.is_valid({**plain(ROW), name: wrong}), name


def test_a_schema_is_its_own() -> None:
    """Who made one stricter changed those of all members of that type."""
    first: Any = schema_of_type(BytesText)
    first["anyOf"][1]["additionalProperties"] = False
    assert schema_of_type(BytesText) != first


def test_null_is_the_last_choice_whichever_order_typing_kept() -> None:
    """typing keeps one of all unions that are equal: a schema changed with the module that was loaded first."""
    assert (
        schema_of_type(None | int) == schema_of_type(int | None) == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    )


def test_what_json_does_not_have_is_no_type_of_a_row() -> None:
    with pytest.raises(TypeError, match="complex"):
        schema_of_type(complex)


def test_a_row_is_frozen() -> None:
    with pytest.raises(AttributeError):
        ROW.name = "other"  # type: ignore[misc]  # as it should be
