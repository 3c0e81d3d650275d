"""`eosctl upgrade plan --plugins DIR --kafka VERSION`: by itself, and as a gate of a plan."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Invoke
from tests.plugins.jars import APP_INFO, CONNECTOR, class_bytes, write_jar
from tests.upgrade.test_upgrade_command import WHERE, cluster

OLD, GOOD = class_bytes("x/Old", extends=CONNECTOR, names=[APP_INFO]), class_bytes("x/Good", extends=CONNECTOR)
NOT_FOR, NOT_JUDGED = "plugin_not_for_kafka", "plugin_not_judged"


def check(invoke: Invoke, folder: Path, kafka: str, *more: str, **given: Any) -> Any:
    return invoke("upgrade", "plan", "--plugins", str(folder), "--kafka", kafka, "-o", "json", *more, **given)


def codes_of(outcome: Any) -> list[str]:
    return [row["code"] for row in outcome.json()["data"]["rows"]]


def test_plugins_alone_need_no_cluster(invoke: Invoke, tmp_path: Path) -> None:
    write_jar(tmp_path / "good-1.2.jar", GOOD)
    outcome = check(invoke, tmp_path, "4.4.0")
    document = outcome.json()
    assert (outcome.exit_code, document["kind"], codes_of(outcome)) == (0, "upgrade-plugins", [])
    assert document["data"]["plugins"] == [{"name": "x.Good", "version": "1.2", "path": str(tmp_path / "good-1.2.jar")}]
    write_jar(tmp_path / "old.jar", OLD)
    outcome = check(invoke, tmp_path, "4.4.0")
    assert (outcome.exit_code, codes_of(outcome)) == (3, [NOT_FOR])
    assert check(invoke, tmp_path, "4.3.1").exit_code == 0


@pytest.mark.parametrize("kafka", ["4.9.0", "2.8.1", "9.0.0-ccs"])
def test_a_version_without_a_table_is_not_known(invoke: Invoke, tmp_path: Path, kafka: str) -> None:
    write_jar(tmp_path / "good.jar", GOOD)
    outcome = check(invoke, tmp_path, kafka)
    assert (outcome.exit_code, codes_of(outcome), outcome.json()["data"]["release"]) == (7, [NOT_JUDGED], None)


@pytest.mark.parametrize(("kafka", "release"), [("4.3.0", "4.3.1"), ("4.4", "4.4.0"), ("8.0.0-ccs", "4.0.0")])
def test_a_release_stands_for_its_version(invoke: Invoke, tmp_path: Path, kafka: str, release: str) -> None:
    write_jar(tmp_path / "good.jar", GOOD)
    outcome = check(invoke, tmp_path, kafka)
    assert (outcome.exit_code, outcome.json()["data"]["release"]) == (0, release)


def test_a_folder_without_plugins_fits_nothing(invoke: Invoke, tmp_path: Path) -> None:
    write_jar(tmp_path / "p" / "library.jar", class_bytes("x/Library"))
    outcome = check(invoke, tmp_path, "4.4.0")
    assert (outcome.exit_code, codes_of(outcome)) == (7, [NOT_JUDGED])


def test_one_plugin_in_two_versions(invoke: Invoke, tmp_path: Path) -> None:
    """Connect takes the newer one of two folders; only the findings say that there are two."""
    for version in ("1.0", "2.0"):
        write_jar(tmp_path / version / f"good-{version}.jar", GOOD)
    outcome = check(invoke, tmp_path, "4.4.0")
    assert (outcome.exit_code, codes_of(outcome)) == (0, ["plugin_in_two_versions"])


@pytest.mark.parametrize("output", ["text", "json", "ndjson", "yaml"])
def test_names_need_not_be_utf_8(invoke: Invoke, tmp_path: Path, output: str) -> None:
    """YAML ended in UnicodeEncodeError."""
    write_jar(tmp_path / "a.jar", OLD).rename(os.fsdecode(bytes(tmp_path) + b"/\xff\xfe.jar"))
    outcome = invoke("upgrade", "plan", "--plugins", str(tmp_path), "--kafka", "4.4.0", "-o", output)
    assert (outcome.exit_code, NOT_FOR in outcome.stdout) == (3, True)


@pytest.mark.parametrize(
    "words",
    [
        ("--plugins", "."), ("--kafka", "4.4.0"), ("--plugins", ".", "--kafka", "newest"),
        ("--plugins", "nowhere", "--kafka", "4.4.0"),
    ],
)  # fmt: skip
def test_what_is_missing_is_a_usage_error(invoke: Invoke, words: tuple[str, ...]) -> None:
    assert invoke("upgrade", "plan", *words).exit_code == 2


@pytest.mark.parametrize(
    ("plugin", "kafka", "status", "code"),
    [(GOOD, "4.4.0", "pass", 0), (OLD, "4.4.0", "fail", 3), (OLD, "4.3.1", "pass", 0), (GOOD, "4.9.0", "unknown", 0)],
)
def test_a_plan_has_the_gate(invoke: Invoke, tmp_path: Path, plugin: bytes, kafka: str, status: str, code: int) -> None:
    """The gate stops no `apply`, which changes no version of Kafka and has no such gate."""
    write_jar(tmp_path / "p.jar", plugin)
    outcome = check(invoke, tmp_path, kafka, "--to", "enabled", *WHERE, **cluster("disabled").surroundings)
    data = outcome.json()["data"]
    gate = {each["id"]: each for each in data["gates"]}["plugins_fit"]
    assert (outcome.exit_code, gate["status"], gate["stops_apply"]) == (code, status, False)
    assert [each["code"] for each in data["plugins"]["findings"]] == {
        "pass": [], "fail": [NOT_FOR], "unknown": [NOT_JUDGED],
    }[status]  # fmt: skip


def test_a_plan_without_plugins_says_nothing_of_them(invoke: Invoke) -> None:
    outcome = invoke("upgrade", "plan", "--to", "enabled", *WHERE, "-o", "json", **cluster("disabled").surroundings)
    data = outcome.json()["data"]
    assert "plugins" not in data
    assert "plugins_fit" not in {each["id"] for each in data["gates"]}
