"""`-o`: the same facts in every format, one document also on failure, whatever could not be parsed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
import yaml

from tests.conftest import Invoke
from tests.fakes.clock import PLENTY_S
from tests.fakes.transactions import scene

CANNOT_CONNECT = ("txn", "list", "-b", "127.0.0.1:1", "--timeout", "300s")


def _told(invoke: Invoke, *args: str) -> tuple[Any, Any, list[Any], str]:
    """What JSON, YAML, NDJSON and text tell of one command line."""
    in_yaml = yaml.safe_load(invoke(*args, "-o", "yaml").stdout)
    in_ndjson = [json.loads(line) for line in invoke(*args, "-o", "ndjson").stdout.splitlines()]
    return invoke(*args, "-o", "json").json(), in_yaml, in_ndjson, invoke(*args).stdout


@pytest.mark.parametrize(
    "args", [("explain",), ("schema",), ("sandbox", "status", "--name", "none"), ("schema", "error")]
)
def test_every_format_tells_the_same(invoke: Invoke, args: tuple[str, ...]) -> None:
    in_json, in_yaml, in_ndjson, text = _told(invoke, *args)
    assert in_yaml == in_json
    assert in_ndjson == in_json["data"]["rows"]
    assert all(row.get("code", row.get("kind")) in text for row in in_json["data"]["rows"])


@pytest.mark.parametrize(
    "args",
    [
        (*CANNOT_CONNECT, "-o", "FORMAT"),
        ("--output", "FORMAT", *CANNOT_CONNECT),
        ("nosuch", "-oFORMAT"),
        ("nosuch", "-vvoFORMAT"),
        ("--output=FORMAT", "nosuch"),
        ("txn", "list", "--timeout", "0", "-o", "FORMAT"),
        ("fence", "-o", "FORMAT", "--tasks", "x"),
    ],
    ids=" ".join,
)
def test_a_failure_is_a_document_too(invoke: Invoke, args: tuple[str, ...]) -> None:
    def run(output: str) -> Any:
        return invoke(*(word.replace("FORMAT", output) for word in args))

    in_json, in_yaml, in_ndjson, in_text = run("json"), run("yaml"), run("ndjson"), run("text")
    document = in_json.json()
    assert document["kind"] == "error"
    assert document["exit_code"] == in_json.exit_code != 0
    assert yaml.safe_load(in_yaml.stdout) == document
    assert (in_ndjson.stdout, in_text.stdout) == ("", "")
    assert in_json.exit_code == in_yaml.exit_code == in_ndjson.exit_code == in_text.exit_code
    assert in_json.stderr == in_yaml.stderr == in_ndjson.stderr == in_text.stderr != ""


def test_a_command_with_rows_tells_the_same_in_every_format(invoke: Invoke) -> None:
    with scene() as stage:
        args = ("fence", "--connector", "orders", "nosuch", "--dry-run", *stage.flags)
        told = {
            output: invoke(*args, "-o", output, **stage.surroundings)
            for output in ("json", "yaml", "ndjson", "text", "wide")
        }
    document = told["json"].json()
    assert yaml.safe_load(told["yaml"].stdout) == document
    assert [json.loads(line) for line in told["ndjson"].stdout.splitlines()] == document["data"]["rows"]
    text, wide = told["text"].stdout.splitlines(), told["wide"].stdout.splitlines()
    headers = text[0].split()
    assert [header for header in wide[0].split() if header in headers] == headers
    assert set(wide[0].split()) - set(headers) >= {"COORDINATOR"}
    assert all(row["transactional_id"] in told["text"].stdout for row in document["data"]["rows"])
    assert {outcome.exit_code for outcome in told.values()} == {0}


def test_a_plan_that_is_asked_about_is_wide_too(invoke: Invoke) -> None:
    with scene() as stage:
        refused = invoke("fence", "g-orders-0", *stage.flags, "-o", "wide", **stage.surroundings)
    assert (refused.exit_code, refused.stdout) == (6, "")
    assert "RUNNING-ON" in refused.stderr


def test_the_environment_asks_for_a_format_too(invoke: Invoke) -> None:
    outcome = invoke("nosuch", environ={"EOSCTL_OUTPUT": "yaml"})
    assert yaml.safe_load(outcome.stdout)["errors"][0]["code"] == "usage"
    assert invoke("-o", "text", "nosuch", environ={"EOSCTL_OUTPUT": "yaml"}).stdout == ""


def test_an_unknown_format_is_a_usage_error(invoke: Invoke) -> None:
    outcome = invoke("explain", "-o", "xml")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert "'ndjson'" in outcome.stderr


@pytest.mark.parametrize("output", ["text", "json", "yaml", "ndjson"])
def test_a_reader_that_has_seen_enough_changes_nothing(output: str) -> None:
    """`| head -1` ended with exit code 1 and `unexpected BrokenPipeError`."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "eosctl", "explain", "-o", output],
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=PLENTY_S,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")
