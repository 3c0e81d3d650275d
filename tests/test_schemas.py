"""The schemas: one for each kind, valid themselves, and able to fail."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from eosctl.explain.kinds import all_kinds, schema_of
from eosctl.report import Report
from tests.conftest import Invoke
from tests.schema_check import faults_of


@pytest.mark.parametrize("kind", all_kinds())
def test_a_schema_is_one(kind: str) -> None:
    Draft202012Validator.check_schema(schema_of(kind))
    assert json.loads(json.dumps(schema_of(kind)))["title"] == kind


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
