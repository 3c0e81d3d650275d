"""What `eosctl doctor` says of the group as a whole: whether it is exactly-once, and whether it should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.fakes.config_topic import config_records, created
from tests.fakes.config_world import ConfigWorld
from tests.fakes.doctor_scene import W1, W2, cluster, doctor, found

W3 = "http://w3:8083"
NEVER_ENABLED = config_records(*created("orders", 1))
WAS_ENABLED = config_records(*created("orders", 1, record=1), *created("orders", 3))


def first_line(invoke: Invoke, there: ConfigWorld) -> str:
    return doctor(invoke, there).stdout.splitlines()[0]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "1 of 1 worker enabled; 1 source task, exactly-once"),
        ({"known_ids": ()}, "1 of 1 worker enabled; 1 source task, 1 of them not exactly-once"),
        (
            {"modes": {W1: "disabled", W2: "disabled"}, "records": NEVER_ENABLED},
            "0 of 2 workers enabled (2 not_enabled); 1 source task, 1 of them not exactly-once",
        ),
        ({"connectors": {"files": "sink"}}, "1 of 1 worker enabled; no source tasks"),
    ],
)
def test_the_first_line_says_what_the_group_is(invoke: Invoke, changes: dict[str, Any], sentence: str) -> None:
    """Twelve tasks of two workers that were not enabled were no row, and exit 0."""
    assert first_line(invoke, cluster(**changes)) == f"group g: {sentence}"


def test_a_dead_worker_leaves_it_open(invoke: Invoke) -> None:
    there = cluster(modes={W1: "enabled", W2: "enabled", W3: "disabled"})
    there.connect.down.add(W1)
    sentence = first_line(invoke, there)
    assert sentence.startswith("group g: 1 of 3 workers enabled (1 not_enabled, 1 unreachable); ")
    document = envelope_of(doctor(invoke, there, "-o", "json"), "doctor", 3)
    assert sentence == f"group g: {document['data']['group']['sentence']}"
    assert document["data"]["group"]["modes"] == {"enabled": 1, "not_enabled": 1, "unreachable": 1}


def test_a_group_whose_records_say_that_it_was_enabled_is_an_error(invoke: Invoke) -> None:
    there = cluster(modes={W1: "disabled", W2: "disabled"}, records=WAS_ENABLED)
    assert ("gates", "enabled_before", "error") in found(invoke, there, 3)
    quiet = doctor(invoke, there, "--expect", "disabled", "-o", "json")
    codes = [row["code"] for row in envelope_of(quiet, "doctor", 7)["data"]["rows"]]
    assert "enabled_before" not in codes
    assert codes.count("mode_not_proven") == 2, "disabled or preparing: only the workers' files tell"


@pytest.mark.parametrize(("expected", "exit_code"), [("enabled", 0), ("preparing", 3), ("disabled", 3)])
def test_what_is_expected_is_held_against_each_worker(invoke: Invoke, expected: str, exit_code: int) -> None:
    there = cluster(modes={W1: "enabled"})
    document = envelope_of(doctor(invoke, there, "--expect", expected, "-o", "json"), "doctor", exit_code)
    wrong = [(row["code"], row["subject"]) for row in document["data"]["rows"] if row["severity"] == "error"]
    assert wrong == ([] if exit_code == 0 else [("mode_not_expected", W1)])


def test_a_profile_may_say_what_is_expected(invoke: Invoke, tmp_path: Path) -> None:
    """It says nothing against a write: an upgrade changes the mode."""
    config = tmp_path / "config.yaml"
    config.write_text("profiles: {p: {expect: {mode: disabled}}}\n")
    outcome = doctor(invoke, cluster(), "--config", str(config), "-p", "p", "-o", "json")
    rows = envelope_of(outcome, "doctor", 3)["data"]["rows"]
    assert "mode_not_expected" in {row["code"] for row in rows}
    config.write_text("profiles: {p: {expect: {mode: on}}}\n")
    refused = doctor(invoke, cluster(), "--config", str(config), "-p", "p")
    assert refused.exit_code == 2
    assert "expect.mode is one of enabled, preparing, disabled" in refused.stderr
