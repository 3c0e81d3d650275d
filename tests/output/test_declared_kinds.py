"""What the features declare: one schema each, as it was when it was written by hand, and columns that are there."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from eosctl.explain.kinds import ROW_MODULES, all_kinds, declared_kinds, schema_of
from eosctl.output.rows import Kind, words_of_columns
from tests.source_trees import nodes_of

ROOT = Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "tests" / "golden" / "schemas.json"


def _bare(schema: Any) -> Any:
    """A schema without what it says in words; members that are required, and choices, are in no order that counts."""
    if isinstance(schema, list):
        return sorted(map(_bare, schema), key=json.dumps)
    if not isinstance(schema, dict):
        return schema
    return {
        name: sorted(each) if name == "required" else _named(each) if name == "properties" else _bare(each)
        for name, each in schema.items()
        if name != "description"
    }


def _named(properties: dict[str, Any]) -> dict[str, Any]:
    """The members of an object: one of them may be called `description`, or `required`."""
    return {name: _bare(each) for name, each in properties.items()}


def test_the_schemas_are_those_that_were_published(pytestconfig: pytest.Config) -> None:
    """Fields may be added to a kind, never renamed or removed; `--update-golden` writes down what is added."""
    derived = {name: json.loads(json.dumps(_bare(schema_of(name)))) for name in all_kinds()}
    if pytestconfig.getoption("--update-golden"):
        lines = [f"{json.dumps(name)}: {json.dumps(derived[name], ensure_ascii=False)}" for name in sorted(derived)]
        GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    published = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert sorted(derived) == sorted(published)
    for name, schema in derived.items():
        assert schema == _bare(published[name]), name


@pytest.mark.parametrize("name", declared_kinds())
def test_every_column_leads_somewhere_and_has_words(name: str) -> None:
    for header, words in words_of_columns(declared_kinds()[name]):
        assert words.endswith("."), header


@pytest.mark.parametrize("name", declared_kinds())
def test_every_member_of_a_row_has_words(name: str) -> None:
    rows = schema_of(name)["properties"]["data"]["properties"]["rows"]["items"]  # type: ignore[index]  # plain data
    silent = [member for member, schema in rows.get("properties", {}).items() if not _says_something(schema)]
    assert silent == []


def _says_something(schema: Any) -> bool:
    return "description" in schema or any(map(_says_something, schema.get("anyOf", ())))


def test_every_module_that_declares_kinds_is_in_the_table() -> None:
    """What makes a Kind imports the class; other importers only name it in a type, and have none of their own."""
    importing = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "eosctl").rglob("*.py")
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Kind", "plan_and_result")
    }
    others = {name for name in importing if name.startswith("eosctl.output.")}
    assert importing - others == set(ROW_MODULES)


def test_a_kind_is_its_name() -> None:
    kind = next(iter(declared_kinds().values()))
    assert isinstance(kind, Kind)
    assert json.loads(json.dumps({"kind": kind})) == {"kind": str(kind)}
