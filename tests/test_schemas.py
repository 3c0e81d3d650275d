"""The schemas: one for each kind, valid themselves, and able to fail."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from eosctl.explain.kinds import all_kinds, schema_of
from eosctl.output.views.views import VIEWS
from eosctl.report import Report
from eosctl.schemas.notation import schema
from tests.conftest import Invoke
from tests.schema_check import faults_of

HOUSE = Path(__file__).resolve().parent.parent / "eosctl"


def test_every_kind_has_a_schema() -> None:
    written = {
        kind
        for path in HOUSE.rglob("*.py")
        for kind in re.findall(r'kind="([a-z-]+)"', path.read_text(encoding="utf-8"))
    }
    assert written
    assert sorted((written | set(VIEWS)) - set(all_kinds())) == []


@pytest.mark.parametrize("kind", all_kinds())
def test_a_schema_is_one(kind: str) -> None:
    Draft202012Validator.check_schema(schema_of(kind))
    assert json.loads(json.dumps(schema_of(kind)))["title"] == kind


@pytest.mark.parametrize(
    ("shape", "good", "bad"),
    [
        ("int|null", [1, None], ["1", 1.5]),
        ("text", ["a", {"base64": "/wA="}], [1, {"base": 1}]),
        ("any", [1, None, {"a": []}], []),
        ({"write", "keep"}, ["write"], ["delete", None]),
        (["int"], [[], [1, 2]], [["1"], {}]),
        (({"a": "int"}, None), [{"a": 1}, None, {"a": 1, "b": 2}], [{}, {"a": "1"}]),
        ({"a": "int", "b?": "str"}, [{"a": 1}, {"a": 1, "b": "x"}], [{"b": "x"}, {"a": 1, "b": 2}]),
        ({"*": "int"}, [{}, {"x": 1}], [{"x": "1"}]),
    ],
)
def test_notation(shape: object, good: list[Any], bad: list[Any]) -> None:
    validator = Draft202012Validator(schema(shape))
    assert [value for value in good if not validator.is_valid(value)] == []
    assert [value for value in bad if validator.is_valid(value)] == []


def test_the_check_finds_faults() -> None:
    good = Report(kind="sandbox-logs", rows=[{"node": "n", "line": "l"}], data={"files": {"n": "f"}}).envelope()
    assert faults_of(good) == []
    unknown = faults_of({**good, "kind": "nosuch"})
    assert "has no schema" in unknown[0]
    for row in ({"node": "n"}, {"node": "n", "line": 1}, {"node": "n", "line": "l", "more": 1}):
        assert faults_of({**good, "data": {**good["data"], "rows": [row]}}), row  # type: ignore[dict-item]


def test_schema_prints_a_schema(invoke: Invoke) -> None:
    printed = json.loads(invoke("schema", "fence-plan").stdout)
    assert printed == schema_of("fence-plan")
    assert invoke("schema", "fence-plan", "-o", "json").json()["data"]["schema"] == printed


def test_an_unknown_kind_names_what_is_near(invoke: Invoke) -> None:
    outcome = invoke("schema", "fence-pln")
    assert (outcome.exit_code, outcome.stdout) == (1, "")
    assert "Did you mean fence-plan" in outcome.stderr
