"""Whether plugins fit a release of Kafka: what they name, where it is, and what leads there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eosctl.core.findings import Finding
from eosctl.plugins.archives import read_plugin
from eosctl.plugins.kafka_classes import known_classes, read_table
from eosctl.plugins.rules import (
    InstalledPlugin,
    find_two_versions,
    installed_plugins,
    is_isolated,
    java_text,
    judge_plugin,
)
from tests.plugins.jars import (
    APP_INFO,
    CONNECTOR,
    INTERFACE_AND_ABSTRACT,
    SANITIZER,
    SLOW_SOURCE,
    TASK,
    UTILS,
    class_bytes,
    write_jar,
)

TABLE = known_classes()
NOT_FOR, NOT_JUDGED, BUNDLES = "plugin_not_for_kafka", "plugin_not_judged", "plugin_bundles_kafka"
CONSUMER, POLL = (
    "org/apache/kafka/clients/consumer/KafkaConsumer",
    "(J)Lorg/apache/kafka/clients/consumer/ConsumerRecords;",
)


def judge(path: Path, release: str = "4.4.0") -> list[Finding]:
    return judge_plugin(read_plugin(path), TABLE, release, release)


def said(found: list[Finding]) -> list[tuple[str, str, bool]]:
    return [(str(each.code), each.severity, each.certain) for each in found]


def missing(found: Finding) -> list[dict[str, Any]]:
    rows = found.evidence["missing"]
    assert isinstance(rows, list)
    return rows


def test_what_was_moved_is_named_with_its_new_place(tmp_path: Path) -> None:
    """KAFKA-20297: Kafka 4.4 moved AppInfoParser; a version() that asks it dies in the worker's scan of plugins."""
    jar = write_jar(tmp_path / "p.jar", class_bytes("x/C", extends=CONNECTOR, names=[APP_INFO]))
    (found,) = judge(jar)
    assert said([found]) == [(NOT_FOR, "error", True)]
    assert missing(found) == [
        {
            "name": "org.apache.kafka.common.utils.AppInfoParser",
            "moved_to": "org.apache.kafka.common.utils.internals.AppInfoParser",
            "named_by": "x.C",
            "classes": 1,
            "file": "p.jar",
            "path": ["x.C"],
        }
    ]
    assert judge(jar, "4.3.1") == []


def test_the_way_from_a_task_is_shown(tmp_path: Path) -> None:
    """Debezium's Metrics names Sanitizer: its connectors start, and their tasks fail on 4.4."""
    write_jar(tmp_path / "p" / "core.jar", class_bytes("d/Metrics", names=[SANITIZER]))
    task = class_bytes("d/T", extends=TASK, names=["d/Source"])
    write_jar(tmp_path / "p" / "connector.jar", class_bytes("d/Source", names=["d/Metrics"]), task)
    (found,) = judge(tmp_path / "p")
    assert found.severity == "error"
    assert (missing(found)[0]["path"], missing(found)[0]["file"]) == (["d.T", "d.Source", "d.Metrics"], "core.jar")


def test_where_nothing_leads_is_a_warning(tmp_path: Path) -> None:
    jar = write_jar(tmp_path / "p.jar", class_bytes("x/C", extends=CONNECTOR), class_bytes("x/Main", names=[APP_INFO]))
    (found,) = judge(jar)
    assert (found.severity, missing(found)[0]["path"]) == ("warning", [])


def test_what_service_loader_finds_is_led_to(tmp_path: Path) -> None:
    task = class_bytes("x/T", extends=TASK, names=["x/Spi"])
    spi = class_bytes("x/Spi", flags=INTERFACE_AND_ABSTRACT)
    provider = class_bytes("x/Provider", implements=["x/Spi"], names=[APP_INFO])
    (found,) = judge(
        write_jar(tmp_path / "p.jar", task, spi, provider, more={"META-INF/services/x.Spi": b"x.Provider # one\n"})
    )
    assert missing(found)[0]["path"] == ["x.T", "x.Spi", "x.Provider"]


def test_a_class_of_the_plugins_own_is_not_missing(tmp_path: Path) -> None:
    """PluginClassLoader looks into the plugin's own jars where the worker has no such class."""
    connector = class_bytes("x/C", extends=CONNECTOR, names=[APP_INFO])
    assert judge(write_jar(tmp_path / "p.jar", connector, class_bytes(APP_INFO))) == []


def test_the_workers_class_comes_before_the_plugins(tmp_path: Path) -> None:
    """The copy is never loaded: what it names does not matter, and what its methods were does not help."""
    task = class_bytes("x/T", extends=TASK, names=[CONSUMER], uses=[(CONSUMER, "poll", POLL)])
    copy = class_bytes(CONSUMER, names=[APP_INFO], declares=[("poll", POLL)])
    found = judge(write_jar(tmp_path / "p.jar", task, copy))
    assert said(found) == [(NOT_FOR, "error", True), (BUNDLES, "warning", True)]
    assert [each["name"] for each in missing(found[0])] == [
        "org.apache.kafka.clients.consumer.KafkaConsumer#poll(long)"
    ]
    assert found[1].evidence == {"kafka": "4.4.0", "file": "p.jar", "classes": 1}


def test_kafkas_own_plugins_are_not_bundled(tmp_path: Path) -> None:
    """Of some packages the plugin's class loader takes its own: connect-file in plugin.path is meant."""
    own = class_bytes("org/apache/kafka/connect/file/FileStreamSourceConnector", extends=CONNECTOR, names=[APP_INFO])
    jar = write_jar(tmp_path / "p.jar", own)
    assert judge(jar, "4.3.1") == []
    assert said(judge(jar)) == [(NOT_FOR, "error", True)]


@pytest.mark.parametrize(
    ("name", "isolated"),
    [
        ("connect/file/FileStreamSourceTask", True),
        ("connect/mirror/MirrorMaker", True),
        ("connect/transforms/InsertField$Value", True),
        ("connect/transforms/Transformation", False),
        ("connect/transforms/predicates/Predicate", False),
        ("connect/storage/StringConverter", True),
        ("connect/storage/StringConverterConfig", False),
        ("connect/connector/policy/ConnectorClientConfigOverridePolicy", False),
        ("connect/connector/policy/AllConnectorClientConfigOverridePolicy", True),
        ("common/config/provider/ConfigProvider", False),
        ("common/config/provider/FileConfigProvider", True),
        ("common/utils/AppInfoParser", False),
    ],
)
def test_what_a_plugins_class_loader_takes_from_the_plugin_first(name: str, isolated: bool) -> None:
    """PluginUtils.shouldLoadInIsolation."""
    assert is_isolated(f"org/apache/kafka/{name}") is isolated


@pytest.mark.parametrize(("release", "codes"), [("3.9.2", []), ("4.0.0", [NOT_FOR]), ("4.4.0", [NOT_FOR])])
def test_a_method_that_was_removed(tmp_path: Path, release: str, codes: list[str]) -> None:
    """KafkaConsumer.poll(long) is deprecated since 2.0 (KIP-266) and gone from 4.0 on."""
    jar = write_jar(tmp_path / "p.jar", class_bytes("x/T", extends=TASK, uses=[(CONSUMER, "poll", POLL)]))
    assert [each.code for each in judge(jar, release)] == codes


@pytest.mark.parametrize(
    ("extends", "declares", "lacks"),
    [(CONSUMER, [], True), (CONSUMER, [("poll", POLL)], False), ("y/Unknown", [], False)],
)
def test_an_inherited_method(tmp_path: Path, extends: str, declares: list[tuple[str, str]], lacks: bool) -> None:
    """It is Kafka's where no class of the plugin has it; where the plugin inherits from elsewhere nothing is known."""
    mine = class_bytes("x/Mine", extends=extends, declares=declares, uses=[("x/Mine", "poll", POLL)])
    found = judge(write_jar(tmp_path / "p.jar", mine, class_bytes("x/T", extends=TASK, names=["x/Mine"])))
    assert [each.code for each in found] == ([NOT_FOR] if lacks else [])


def test_what_the_table_does_not_have_is_not_judged(tmp_path: Path) -> None:
    jar = write_jar(tmp_path / "p.jar", class_bytes("x/T", extends=TASK, names=["org/apache/kafka/new/Thing"]))
    found = judge(jar)
    assert said(found) == [(NOT_JUDGED, "warning", False)]
    assert found[0].evidence["names"] == ["org.apache.kafka.new.Thing"]


def test_what_was_not_read_is_not_judged(tmp_path: Path) -> None:
    jar = write_jar(tmp_path / "p.jar", class_bytes("x/T", extends=TASK), more={"x/B.class": b"no class"})
    assert said(judge(jar)) == [(NOT_JUDGED, "warning", False)]


@pytest.mark.parametrize("release", TABLE.releases)
def test_a_plugin_of_public_classes_alone_fits_every_release(release: str) -> None:
    assert judge(SLOW_SOURCE, release) == []


def test_the_plugins_in_a_jar_are_what_connect_runs() -> None:
    found = installed_plugins(read_plugin(SLOW_SOURCE), TABLE, "4.4.0")
    assert [each.name for each in found] == [
        "eosctl.tests.Failing",
        "eosctl.tests.SlowSource",
        "eosctl.tests.SlowSource$Counter",
    ]


@pytest.mark.parametrize(
    ("places", "certain"),
    [
        ([("a", "1.0"), ("b", "2.0")], [True]),
        ([("a", "1.0"), ("b", None)], [False]),
        ([("a", "1.0"), ("b", "1.0")], []),
        ([("a", "1.0")], []),
    ],
)
def test_one_plugin_in_two_versions(places: list[tuple[str, str | None]], certain: list[bool]) -> None:
    found = list(find_two_versions(InstalledPlugin("x.C", version, path) for path, version in places))
    assert [each.certain for each in found] == certain
    assert all(each.evidence["versions"] == dict(places) for each in found)


def test_classes_that_are_there_twice_alike_are_one_finding() -> None:
    found = find_two_versions(
        InstalledPlugin(name, version, version) for name in ("x.C", "x.T") for version in ("1.0", "2.0")
    )
    assert [each.evidence["classes"] for each in found] == [["x.C", "x.T"]]


def test_members_are_shown_as_javas_documentation_has_them() -> None:
    assert java_text(("f", "(I[[BLjava/lang/String;[Lx/y/Z;)V")) == "f(int, byte[][], String, Z[])"
    assert java_text(("NAME", "Ljava/lang/String;")) == "NAME"


def test_the_table_knows_what_it_does_not_know() -> None:
    lines = [
        "releases 4.3.1 4.4.0", "package org/apache/kafka/x",
        "classes 1 Gone", "classes 1?2 Unpublished", "classes 3 Here", "class Here",
        "member 1 f(I)V", "member 2 NAME:I",
    ]  # fmt: skip
    table = read_table(lines)
    place = "org/apache/kafka/x"
    assert [table.has(f"{place}/{name}", "4.4.0") for name in ("Gone", "Unpublished", "Here", "Never")] == [
        False, None, True, None,
    ]  # fmt: skip
    assert table.lacks_member(f"{place}/Here", ("f", "(I)V"), "4.4.0")
    assert not table.lacks_member(f"{place}/Here", ("f", "(I)V"), "4.3.1")
    assert table.lacks_member(f"{place}/Here", ("NAME", "I"), "4.3.1")
    assert not table.lacks_member(f"{place}/Here", ("g", "()V"), "4.4.0")
    assert (table.release_of((4, 4)), table.release_of((4, 5)), table.range) == ("4.4.0", None, "4.3 to 4.4")


@pytest.mark.parametrize(
    ("name", "has"),
    [(SANITIZER, {"4.3.1": True, "4.4.0": False}), (UTILS, {"3.3.2": True, "4.4.0": True})],
)
def test_the_table_of_this_eosctl(name: str, has: dict[str, bool]) -> None:
    assert {release: TABLE.has(name, release) for release in has} == has
