"""Settings of a connector's clients that exactly-once tasks die of, or that Connect ignores."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from eosctl.group.observation.rules import WorkerFile
from eosctl.observation.connectors.settings import client_overrides
from tests.group.observations import good, source

FLIGHT = "max.in.flight.requests.per.connection"


def found(config: dict[str, str], worker: dict[str, str] | None = None) -> list[tuple[str, str]]:
    """Severity and message of each finding."""
    seen = replace(good(), connectors=source(config=config), files=(WorkerFile("w.properties", worker or {}),))
    [connector] = seen.connectors or ()
    return [(each.severity, each.message.partition(": ")[2]) for each in client_overrides(connector, seen)]


@pytest.mark.parametrize(
    ("name", "value"), [("acks", "1"), ("acks", "0"), ("retries", "0"), (FLIGHT, "6"), (FLIGHT, "100")]
)
def test_what_an_idempotent_producer_refuses(name: str, value: str) -> None:
    """Every gate passed, and each task failed at its start."""
    words = "which an idempotent producer refuses: its tasks fail at their start"
    override, setting = f"producer.override.{name}", f"producer.{name}"
    assert found({override: value}) == [("error", f"{override}={value}, {words}")]
    assert found({}, {setting: value}) == [("error", f"{setting}={value}, {words}")]


@pytest.mark.parametrize(("name", "value"), [("acks", "all"), ("acks", "-1"), ("retries", "1"), (FLIGHT, "5")])
def test_what_it_takes(name: str, value: str) -> None:
    assert found({f"producer.override.{name}": value}, {f"producer.{name}": "0"}) == []


def test_what_connect_ignores() -> None:
    config = {
        "producer.override.enable.idempotence": "FALSE",
        "producer.override.transactional.id": "mine",
        "consumer.override.isolation.level": "read_uncommitted",
    }
    assert [severity for severity, _message in found(config)] == ["warning"] * 3
    assert (
        found({"producer.override.enable.idempotence": "true", "consumer.override.isolation.level": "read_committed"})
        == []
    )
