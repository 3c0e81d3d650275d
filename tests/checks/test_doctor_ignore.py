"""`eosctl doctor --ignore`: findings that somebody accepted are counted and listed, and change no exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eosctl.errors import UnauthorizedError, UnreachableError
from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.fakes.config_topic import CONFIG_TOPIC
from tests.fakes.config_world import ConfigWorld, compacted
from tests.fakes.doctor_scene import HEALTHY, OFFSETS, W1, W2, cluster, doctor, found, transaction_topic

ONE_REPLICA = ["__transaction_state", CONFIG_TOPIC]


def one_broker() -> ConfigWorld:
    """What a cluster of one broker can't do better, which no option could make --strict pass."""
    config = compacted(CONFIG_TOPIC, 1, replication_factor=1)
    return cluster(described=[config, compacted(OFFSETS, 25), transaction_topic(replicas=1, least=1)])


def test_a_warning_of_a_cluster_with_one_broker_can_be_accepted(invoke: Invoke) -> None:
    assert doctor(invoke, one_broker(), "--strict").exit_code == 3
    outcome = doctor(invoke, one_broker(), "--strict", "--ignore", "few_replicas", "-o", "json")
    document = envelope_of(outcome, "doctor", 0)
    assert [(row["check"], row["code"], row["severity"]) for row in document["data"]["rows"]] == HEALTHY
    [ignored] = document["data"]["ignored"]
    assert (ignored["check"], ignored["code"], ignored["evidence"]["subjects"]) == (
        "topics",
        "few_replicas",
        list(ONE_REPLICA),
    )
    assert document["data"]["summary"]["ignored"] == 1
    assert document["data"]["summary"]["counts"]["warning"] == 0


def test_of_one_subject_only(invoke: Invoke) -> None:
    words = ("--strict", "--ignore", f"few_replicas:{CONFIG_TOPIC}")
    rows = envelope_of(doctor(invoke, one_broker(), *words, "-o", "json"), "doctor", 3)["data"]["rows"]
    assert [row["subject"] for row in rows if row["code"] == "few_replicas"] == ["__transaction_state"]
    both = (*words, "--ignore", "few_replicas:__transaction_state")
    assert doctor(invoke, one_broker(), *both).exit_code == 0


def test_an_error_that_is_accepted_is_no_exit_code_3(invoke: Invoke) -> None:
    there = cluster()
    there.connect.connectors["orders"].fail()
    assert doctor(invoke, there).exit_code == 3
    assert doctor(invoke, there, "--ignore", "task_failed:orders/0").exit_code == 0


def test_text_counts_them_and_wide_lists_them(invoke: Invoke) -> None:
    words = ("--ignore", "few_replicas", "--ignore", "acls_not_checked")
    text = doctor(invoke, one_broker(), *words).stdout
    assert "Nothing is wrong but what is ignored.\n" in text
    assert text.endswith("\nchecks: 11, ignored: 2\n")
    assert "few_replicas" not in text
    wide = doctor(invoke, one_broker(), *words, "-o", "wide").stdout
    assert [line.split("  ")[:2] for line in wide.splitlines()[-2:]] == [
        ["ignored warning", "topics/few_replicas"],
        ["ignored info", "acls/acls_not_checked"],
    ]


def test_a_profile_lists_what_is_accepted_there(invoke: Invoke, tmp_path: Path) -> None:
    """The command line adds to it."""
    config = tmp_path / "config.yaml"
    config.write_text(f"profiles:\n  p:\n    ignore:\n      - few_replicas:{CONFIG_TOPIC}\n")
    profile = ("--config", str(config), "-p", "p", "--strict")
    assert doctor(invoke, one_broker(), *profile).exit_code == 3
    assert doctor(invoke, one_broker(), *profile, "--ignore", "few_replicas:__transaction_state").exit_code == 0
    shown = invoke("profile", "show", "--config", str(config), "-p", "p", "--origin", "-o", "json").json()
    assert {"name": "ignore", "value": [f"few_replicas:{CONFIG_TOPIC}"], "origin": "profile p"} in shown["data"]["rows"]
    assert invoke("profile", "set", "p", "ignore=few_replicas,not_checked:acls", "--config", str(config)).exit_code == 0
    assert doctor(invoke, one_broker(), *profile).exit_code == 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("few_replica", "--ignore: no finding has the code 'few_replica'"),
        ("few_replicas:", "--ignore: 'few_replicas:' names no subject"),
        ("zombie", "--ignore: no finding has the code 'zombie'"),
    ],
)
def test_a_code_that_no_finding_has_is_a_usage_error(invoke: Invoke, text: str, told: str) -> None:
    """Nothing was asked of the cluster then."""
    there = one_broker()
    asked: list[object] = []
    there.connect.before("*", asked.append)
    outcome = doctor(invoke, there, "--ignore", text)
    assert outcome.exit_code == 2
    assert told in outcome.stderr
    assert ("Did you mean few_replicas" in outcome.stderr) is (text == "few_replica")
    assert asked == []


def test_a_code_of_a_profile_that_no_finding_has_is_told_with_the_profile(invoke: Invoke, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("profiles: {p: {ignore: no_such_code}}\n")
    outcome = doctor(invoke, cluster(), "--config", str(config), "-p", "p")
    assert outcome.exit_code == 2
    assert "profile p: ignore: no finding has the code 'no_such_code'" in outcome.stderr


def test_a_gate_can_be_accepted(invoke: Invoke) -> None:
    there = cluster(modes={W1: "enabled", W2: "disabled"})
    codes = [row[1] for row in found(invoke, there, 3) if row[2] != "info"]
    assert "no_mixed_modes" in codes
    assert doctor(invoke, there, "--strict", *(f"--ignore={code}" for code in codes)).exit_code == 0


def test_a_check_that_can_not_run_can_be_accepted(invoke: Invoke) -> None:
    faults = {"topic_partitions": UnauthorizedError("not allowed")}
    assert doctor(invoke, cluster(faults=faults)).exit_code == 7
    outcome = doctor(invoke, cluster(faults=faults), "--strict", "--ignore", "not_checked:transactions")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert "checks: 11, not checked: 1, findings: 1, ignored: 1" in outcome.stdout


def test_where_nothing_could_be_checked_nothing_can_be_accepted(invoke: Invoke) -> None:
    doors = ("describe_group", "describe", "open", "list_transactions", "topic_partitions", W1)
    faults: dict[str, Any] = dict.fromkeys(doors, UnreachableError("away"))
    assert doctor(invoke, cluster(faults=faults), "--ignore", "not_checked").exit_code == 4
