"""What `eosctl doctor` says of plugins: those that workers list differently, and the jars in a worker's plugin.path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Invoke
from tests.fakes.config_topic import CONFIG_TOPIC
from tests.fakes.config_world import ConfigWorld, compacted
from tests.fakes.doctor_scene import OFFSETS, W1, W2, cluster, doctor, transaction_topic, write_worker_file
from tests.fakes.world import STATUSES
from tests.plugins.jars import APP_INFO, CONNECTOR, class_bytes, write_jar

TOPICS = [compacted(CONFIG_TOPIC, 1), compacted(OFFSETS, 25), compacted(STATUSES, 1), transaction_topic()]
ABOUT_PLUGINS = {
    *("plugins_differ", "plugin_not_for_kafka", "plugin_not_judged", "plugins_not_seen", "plugin_bundles_kafka"),
    *("plugin_in_two_versions", "plugin_missing"),
}
X, Y = "com.acme.X", "com.acme.Y"


def scene(*classes: str) -> ConfigWorld:
    there = cluster(modes={W1: "enabled", W2: "enabled"}, described=TOPICS)
    listed = [{"class": each, "type": "source", "version": "1"} for each in classes]
    there.connect.plugins = [*there.connect.plugins, *listed]
    return there


def rows(invoke: Invoke, there: ConfigWorld, *more: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = doctor(invoke, there, *more, "-o", "json").json()["data"]["rows"]
    return [row for row in found if row["code"] in ABOUT_PLUGINS]


def said(found: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(row["code"], row["severity"], row["subject"]) for row in found]


def test_equal_workers_are_quiet(invoke: Invoke) -> None:
    assert rows(invoke, scene(X, Y)) == []


def test_another_version_at_one_worker(invoke: Invoke) -> None:
    there = scene(X, Y)
    there.connect.plugin_versions = {W2: {X: "2"}}
    found = rows(invoke, there)
    assert said(found) == [("plugins_differ", "warning", "g")]
    assert found[0]["evidence"]["plugins"] == {X: {W1: ["1"], W2: ["2"]}}


def test_a_class_that_one_worker_lacks_and_no_connector_uses(invoke: Invoke) -> None:
    there = scene(X, Y)
    there.connect.lacking = {W2: {Y}}
    found = rows(invoke, there)
    assert said(found) == [("plugins_differ", "warning", "g")]
    assert found[0]["evidence"]["plugins"] == {Y: {W1: ["1"], W2: None}}


def test_one_that_a_connector_uses_is_an_error_of_its_own(invoke: Invoke) -> None:
    there = scene(X)
    there.connect.add("x", {"connector.class": X}, state="STOPPED")
    there.connect.lacking = {W2: {X}}
    assert said(rows(invoke, there)) == [("plugin_missing", "error", W2)]


def test_a_plugin_without_a_version_differs_from_nothing(invoke: Invoke) -> None:
    """Workers of 4.4 list one that they can't load without its version."""
    there = scene(X)
    there.connect.plugin_versions = {W2: {X: None}}
    assert rows(invoke, there) == []


def test_kafkas_own_plugins_have_the_version_of_their_worker(invoke: Invoke) -> None:
    there = scene()
    own = str(there.connect.plugins[0]["class"])
    there.connect.plugin_versions = {W2: {own: "4.4.0"}}
    assert rows(invoke, there) == []


def worker_file(tmp_path: Path, plugin_path: str) -> tuple[str, str]:
    path = write_worker_file(tmp_path / "worker.properties")
    path.write_text(f"{path.read_text()}plugin.path={plugin_path}\n")
    return "-w", str(path)


@pytest.mark.parametrize(
    ("version", "expected"), [("4.3.1", []), ("4.4.0", ["plugin_not_for_kafka"]), ("4.9.0", ["plugin_not_judged"])]
)
def test_the_jars_of_a_workers_file_are_judged_by_the_workers_version(
    invoke: Invoke, tmp_path: Path, version: str, expected: list[str]
) -> None:
    write_jar(tmp_path / "plugins" / "old.jar", class_bytes("x/Old", extends=CONNECTOR, names=[APP_INFO]))
    there = scene()
    there.connect.version = version
    found = rows(invoke, there, *worker_file(tmp_path, f"{tmp_path / 'plugins'}"))
    assert [each["code"] for each in found] == expected


@pytest.mark.parametrize("plugin_path", ["/nowhere/at/all", "plugins", "${file:/x:path}", "/nowhere , /nor/here"])
def test_folders_that_are_not_here_are_said(invoke: Invoke, tmp_path: Path, plugin_path: str) -> None:
    """A relative one is below the worker's folder, which is not known."""
    (tmp_path / "plugins").mkdir()
    words = worker_file(tmp_path, plugin_path)
    assert said(rows(invoke, scene(), *words)) == [("plugins_not_seen", "info", words[1])]


def test_a_file_without_plugin_path_says_nothing(invoke: Invoke, tmp_path: Path) -> None:
    assert rows(invoke, scene(), "-w", str(write_worker_file(tmp_path / "worker.properties"))) == []
