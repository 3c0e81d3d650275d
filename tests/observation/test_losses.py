"""Records that are lost or repeated inside committed transactions: who is named, and how certain that is."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.core.findings import Finding
from eosctl.core.workers.modes import Mode, UpgradeWorker
from eosctl.group.observation.rules import WorkerFile
from eosctl.observation.connectors import losses
from tests.group.observations import good, source
from tests.observation.rule_cases import found

JSON = "org.apache.kafka.connect.json.JsonConverter"
AVRO = "io.confluent.connect.avro.AvroConverter"
PLAIN = {"key.converter": JSON, "value.converter": JSON}
POSTGRES = {"connector.class": "io.debezium.connector.postgresql.PostgresConnector", **PLAIN}


def workers(*versions: str | None, mode: Mode = Mode.ENABLED) -> tuple[UpgradeWorker, ...]:
    return tuple(UpgradeWorker(f"http://w{at}:8083", mode, version=each) for at, each in enumerate(versions))


def retriable(config: dict[str, str], *versions: str | None, **more: Any) -> list[Finding]:
    seen = replace(good(), connectors=source(config={**PLAIN, **config}), workers=workers(*versions), **more)
    return found(losses.retriable, seen)


@pytest.mark.parametrize(
    ("config", "versions", "expected"),
    [
        ({"value.converter": AVRO}, ["3.9.2"], ("warning", True)),
        ({"value.converter": AVRO}, ["4.3.1", "3.9.2"], ("warning", True)),
        ({"value.converter": AVRO}, ["4.3.1", None], ("warning", False)),  # it may be an older one
        ({"value.converter": AVRO}, ["4.0.0"], None),
        ({"value.converter": AVRO}, ["7.9.0-ccs"], ("warning", True)),
        ({}, ["3.9.2"], None),
        ({"value.converter": "com.acme.Own"}, ["3.9.2"], ("info", False)),
        ({"value.converter": "com.acme.Own"}, ["4.3.1", None], None),
        ({"transforms": "t", "transforms.t.type": "com.acme.Own"}, ["3.9.2"], ("info", False)),
        ({"value.converter": AVRO, "errors.retry.timeout": "-1"}, ["3.9.2"], ("info", True)),  # when it is stopped
        ({"value.converter": AVRO, "errors.retry.timeout": "-1"}, ["3.3.2"], ("warning", True)),
        ({"value.converter": AVRO, "errors.retry.timeout": "60000"}, ["3.9.2"], ("warning", True)),
        ({"value.converter": AVRO, "errors.retry.timeout": "${env:T}"}, ["3.9.2"], ("warning", False)),  # it may be -1
        ({"value.converter": AVRO, "errors.tolerance": "all"}, ["3.9.2"], None),  # which has a finding of its own
    ],
)
def test_a_converter_that_a_registry_can_fail(
    config: dict[str, str], versions: list[str | None], expected: tuple[str, bool] | None
) -> None:
    """`connectors check` said that nothing stands against exactly-once."""
    named = [(each.severity, each.certain) for each in retriable(config, *versions)]
    assert named == ([] if expected is None else [expected])


def test_the_workers_own_converters_are_those_of_their_file() -> None:
    bare = {"key.converter": "", "value.converter": ""}
    [unknown] = retriable(bare, "3.9.2")
    assert (unknown.severity, unknown.evidence["known"]) == ("info", False)
    [known] = retriable(bare, "3.9.2", files=(WorkerFile("w", {"key.converter": JSON, "value.converter": AVRO}),))
    assert (known.severity, known.evidence["may_throw"]) == ("warning", [f"value.converter={AVRO}"])
    assert retriable(bare, "3.9.2", mirror_maker=True) == []


@pytest.mark.parametrize(("mode", "refused"), [(Mode.ENABLED, False), (Mode.DISABLED, True)])
def test_what_a_producer_refuses_is_lost_without_transactions_alone(mode: Mode, refused: bool) -> None:
    """An exactly-once task fails at it, with errors.tolerance=all, too."""
    seen = replace(good(), connectors=source(config={"errors.tolerance": "all"}), workers=workers("4.3.1", mode=mode))
    [finding] = found(losses.skipping, seen)
    assert (finding.severity, "KAFKA-13348" in finding.message) == ("warning", refused)


@pytest.mark.parametrize("name", ["errors.tolerance", "event.processing.failure.handling.mode"])
def test_a_setting_that_only_a_worker_can_resolve_is_no_clean_bill(name: str) -> None:
    seen = replace(good(), connectors=source(config={name: "${file:/a:b}"}))
    assert [(str(each.code), each.certain) for each in found(losses.skipping, seen)] == [("value_unknown", False)]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, None),
        ({"transforms": "f", "transforms.f.type": "org.apache.kafka.connect.transforms.Filter"}, True),
        ({"transforms": "f", "transforms.f.type": "com.acme.Own"}, False),
    ],
)
def test_filters_are_named(config: dict[str, str], expected: bool | None) -> None:
    named = found(losses.filters, replace(good(), connectors=source(config=config)))
    assert [(each.severity, each.certain) for each in named] == ([] if expected is None else [("info", expected)])


@pytest.mark.parametrize(
    ("config", "changes", "expected"),
    [
        (POSTGRES, {"snapshots": frozenset({"c"}), "aborted_offsets": ()}, True),
        (POSTGRES, {"aborted_offsets": ()}, None),
        (POSTGRES, {"aborted_offsets": None}, False),
        ({**POSTGRES, "offsets.storage.topic": "mine"}, {"aborted_offsets": ()}, False),
        ({**POSTGRES, "snapshot.mode": "never"}, {"aborted_offsets": None}, None),
        (PLAIN, {"aborted_offsets": None}, None),
    ],
)
def test_a_snapshot_that_is_under_way(config: dict[str, str], changes: dict[str, Any], expected: bool | None) -> None:
    named = found(losses.snapshot, replace(good(), connectors=source(config=config), **changes))
    assert [each.certain for each in named] == ([] if expected is None else [expected])
