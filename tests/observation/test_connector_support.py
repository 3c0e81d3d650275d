"""Whether a connector can be exactly-once, as its validation says, and what that means for it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.core.workers.access import ConnectAccess
from eosctl.group.observation.rules import VALIDATION, ObservedConnector
from eosctl.observation.connectors.rules import Rule, boundary, support
from eosctl.observation.gather import with_validations
from tests.fakes.rescue_scene import Scene
from tests.group.observations import good, source
from tests.observation.rule_cases import MIRRORED, REFUSED, UNDECLARED, found, required


def test_what_mirror_maker_lacks_is_the_remedy() -> None:
    """It was told to ask the documentation, though its own message names the property."""
    fixes = {text: found(support, replace(good(), **required(text)))[0].fix for text in (MIRRORED, REFUSED)}
    assert fixes[MIRRORED].startswith("Set consumer.isolation.level=read_committed in the connector's config")
    assert "documentation" in fixes[REFUSED]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            required(UNDECLARED),
            "c does not declare whether it supports exactly-once: it requires it, and Connect refuses",
        ),
        ({"connectors": source(support_errors=(UNDECLARED,))}, "supports exactly-once: it is taken on trust"),
        (required(REFUSED), f"c: {REFUSED}: it requires it, and would not start"),
        ({"connectors": source(support_errors=(REFUSED,))}, f"c: {REFUSED}: it stays at-least-once"),
    ],
)
def test_what_a_lacking_support_means_for_the_connector(changes: dict[str, Any], said: str) -> None:
    [finding] = found(support, replace(good(), **changes))
    assert said in finding.message


ISOLATION = "isolation.level"


@pytest.mark.parametrize(
    ("connector_class", "config", "codes"),
    [
        ("MirrorSourceConnector", {}, ["not_supported"]),
        ("MirrorSourceConnector", {f"consumer.{ISOLATION}": "read_committed"}, []),
        ("MirrorSourceConnector", {f"source.{ISOLATION}": "read_committed"}, []),
        ("MirrorSourceConnector", {f"source.consumer.{ISOLATION}": "read_committed"}, []),
        ("MirrorSourceConnector", {ISOLATION: "read_committed"}, ["not_supported"]),
        ("MirrorSourceConnector",
         {f"source.consumer.{ISOLATION}": "read_uncommitted", f"consumer.{ISOLATION}": "read_committed"},
         ["not_supported"]),
        ("MirrorSourceConnector",
         {f"source.{ISOLATION}": "read_committed", f"consumer.{ISOLATION}": "read_uncommitted"}, []),
        ("MirrorCheckpointConnector", {}, []),
        ("MirrorHeartbeatConnector", {}, []),
    ],
)  # fmt: skip
def test_mirror_makers_own_workers_validate_nothing(
    connector_class: str, config: dict[str, str], codes: list[str]
) -> None:
    """Dedicated MirrorMaker has no REST API to ask: its config tells (MirrorSourceConnector, Kafka 3.5 to 4.3)."""
    there = source(config={"connector.class": f"org.apache.kafka.connect.mirror.{connector_class}", **config})
    findings = found(support, replace(good(), connectors=there, mirror_maker=True))
    assert [each.code for each in findings] == codes
    assert all(each.message.startswith("c: its source consumer's isolation.level is not ") for each in findings)


@pytest.mark.parametrize("rule", [support, boundary])
def test_what_was_not_validated_is_of_all_connectors(rule: Rule) -> None:
    [finding] = found(rule, good().without([VALIDATION], "it was not asked for"))
    assert (finding.code, finding.severity, finding.subject, finding.certain) == (
        "support_unknown", "info", "connectors", False
    )  # fmt: skip
    assert finding.message.endswith(": it was not asked for")
    assert finding.fix.startswith("Leave out --no-validate")


MIRROR = "org.apache.kafka.connect.mirror."


@pytest.mark.parametrize(
    ("connector_class", "codes"),
    [
        (f"{MIRROR}MirrorHeartbeatConnector", ["not_supported"]),
        (f"{MIRROR}MirrorCheckpointConnector", ["not_supported"]),
        ("MirrorCheckpoint", ["not_supported"]),
        (f"{MIRROR}MirrorSourceConnector", ["support_undeclared", "not_supported"]),
        ("ConnectorMirrorCheckpoint", ["support_undeclared", "not_supported"]),
        ("", ["support_undeclared", "not_supported"]),
    ],
)
def test_who_copies_nothing_need_not_declare_it_but_where_it_is_required(
    connector_class: str, codes: list[str]
) -> None:
    def said(**config: str) -> list[str]:
        known = source(support_errors=(UNDECLARED, REFUSED), config={"connector.class": connector_class, **config})
        return [finding.code for finding in found(support, replace(good(), connectors=known))]

    assert said() == codes
    assert said(**{"exactly.once.support": "required"}) == ["support_undeclared", "not_supported"]


def test_mirror_makers_workers_are_asked_for_nothing_but_what_the_file_says() -> None:
    """One that was not validated has to be read in the file; a boundary is asked about where the config has one."""
    seen = replace(good(), mirror_maker=True).without([VALIDATION], "there is no REST interface")
    [finding] = found(support, seen)
    assert finding.fix.startswith("Set SOURCE.consumer.isolation.level=read_committed in MirrorMaker's file")
    assert found(boundary, seen) == []
    asked = replace(seen, connectors=source(config={"transaction.boundary": "connector"}))
    assert [each.code for each in found(boundary, asked)] == ["support_unknown"]


def test_a_connector_that_is_not_mirror_makers_is_not_judged_by_its_config() -> None:
    other = source(config={"connector.class": "org.example.FileStreamSource"}, support_errors=None)
    assert [each.code for each in found(support, replace(good(), connectors=other, mirror_maker=True))] == [
        "support_unknown"
    ]


@pytest.mark.parametrize(
    ("access", "secret"),
    [
        (ConnectAccess(), None),
        (ConnectAccess(named=frozenset({"http://w0:8083"})), "hunter2"),
        (ConnectAccess(trust_discovered=True), "hunter2"),
    ],
    ids=["discovered", "named", "trusted"],
)
def test_a_worker_that_nobody_named_validates_what_it_knows_itself(access: ConnectAccess, secret: str | None) -> None:
    """It was sent whole configs, passwords included, which another worker had told."""
    world = Scene()
    sent = list[Any]()
    world.connect.before("validate", lambda call: sent.append(call.what[2]))
    there = ObservedConnector("c", "source", {**world.connector.config, "password": "hunter2"})
    observation = replace(good(), connectors=(there,), cluster_ids={"http://w0:8083": "c"})
    with_validations(world.app(connect_urls=(), connect=access), observation)
    assert [each.get("password") for each in sent] == [secret]
