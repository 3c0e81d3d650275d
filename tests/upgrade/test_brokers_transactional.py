"""Brokers without transactions: the plan of an upgrade fails, doctor names them, and no hint sends to newer ones.

They emulate Kafka (Event Hubs' Standard tier, among others): the plan used to pass, and workers would have been rolled
out that can't start.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from eosctl.errors import ExitCode
from tests.conftest import Invoke
from tests.fakes.transactions import W1, Scene

GONE = frozenset({22, 24, 25, 26, 27, 28, 61, 65, 66})


def built(mode: str = "disabled", nodes: int = 1) -> Scene:
    scene = Scene(modes={W1: mode}, nodes=nodes)
    scene.brokers.state.transactions.clear()
    scene.topics.add_topic("connect-offsets", 25)
    for topic in ("connect-offsets", "connect-configs"):
        scene.brokers.state.topics[topic].config["cleanup.policy"] = "compact"
    return scene


@pytest.fixture
def emulated() -> Iterator[Scene]:
    scene = built()
    scene.brokers.left_out = dict.fromkeys(scene.brokers.state.nodes, GONE)
    with scene.brokers:
        yield scene


def run(invoke: Invoke, scene: Scene, *args: str) -> tuple[int, Any]:
    outcome = invoke(*args, *scene.flags, "-o", "json", **scene.surroundings)
    return outcome.exit_code, outcome.json()


def gate(document: Any) -> Any:
    return {each["id"]: each for each in document["data"]["gates"]}["brokers_transactional"]


@pytest.mark.parametrize("target", ["preparing", "enabled"])
def test_the_gate_fails_where_no_broker_has_transactions(invoke: Invoke, emulated: Scene, target: str) -> None:
    code, document = run(invoke, emulated, "upgrade", "plan", "--to", target)
    assert code == ExitCode.FINDINGS
    assert gate(document)["status"] == "fail"
    assert "InitProducerId" in gate(document)["evidence"]


def test_the_way_down_needs_no_transactions(invoke: Invoke, emulated: Scene) -> None:
    _code, document = run(invoke, emulated, "upgrade", "plan", "--to", "disabled")
    assert gate(document)["status"] == "pass"


def test_every_broker_is_asked(invoke: Invoke) -> None:
    """A cluster that is being moved: the transactions' coordinator may be any of its brokers."""
    scene = built(nodes=3)
    scene.brokers.left_out = {scene.brokers.state.nodes[2]: {26}}
    with scene.brokers:
        _code, document = run(invoke, scene, "upgrade", "plan", "--to", "preparing")
    assert gate(document)["status"] == "fail"
    assert "EndTxn" in gate(document)["evidence"]


def test_a_broker_that_does_not_answer_is_no_proof(invoke: Invoke) -> None:
    scene = built(nodes=3)
    scene.brokers.left_out = {}
    with scene.brokers:
        scene.brokers.frozen = {scene.brokers.state.nodes[2]}
        _code, document = run(invoke, scene, "upgrade", "plan", "--to", "preparing", "--timeout", "6s")
    assert gate(document)["status"] == "unknown"


def test_no_broker_is_no_proof(invoke: Invoke) -> None:
    """Metadata without a broker, as of a cluster that starts."""
    scene = built()
    with scene.brokers:
        scene.brokers.unnamed = {*scene.brokers.state.nodes}
        _code, document = run(invoke, scene, "upgrade", "plan", "--to", "preparing", "--timeout", "6s")
    assert gate(document)["status"] == "unknown"


def test_kafkas_own_brokers_pass(invoke: Invoke) -> None:
    scene = built()
    with scene.brokers:
        _code, document = run(invoke, scene, "upgrade", "plan", "--to", "preparing")
    assert gate(document)["status"] == "pass"


@pytest.mark.parametrize(("mode", "severity"), [("disabled", "info"), ("enabled", "error")])
def test_doctor_names_them_and_accuses_only_a_group_that_needs_them(invoke: Invoke, mode: str, severity: str) -> None:
    scene = built(mode)
    scene.brokers.left_out = dict.fromkeys(scene.brokers.state.nodes, GONE)
    with scene.brokers:
        _code, document = run(invoke, scene, "doctor")
    [found] = [row for row in document["data"]["rows"] if row["code"] == "brokers_without_transactions"]
    assert found["severity"] == severity
    assert found["evidence"]["kind"] is None
    assert "brokers_transactional" not in {row["code"] for row in document["data"]["rows"]}


@pytest.mark.parametrize(
    "args",
    [
        ("txn", "list"),
        ("txn", "hanging", "--all"),
        ("txn", "applications"),
        ("txn", "describe", "g-orders-0"),
        ("fence", "g-orders-0", "--unknown-liveness", "--dry-run"),
        ("fence", "g-orders-0", "--unknown-liveness", "--create-unknown", "--dry-run"),
        ("doctor",),
        ("doctor", "--for", "streams"),
        ("task-counts", "validate"),
        ("upgrade", "plan", "--to", "preparing"),
    ],
)
def test_no_hint_sends_to_newer_brokers_or_to_another_client(
    invoke: Invoke, emulated: Scene, args: tuple[str, ...]
) -> None:
    """`txn list` said to connect to a newer broker, and `fence` to use librdkafka, which has no other broker to ask."""
    outcome = invoke(*args, *emulated.flags, **emulated.surroundings)
    text = outcome.stdout + outcome.stderr
    assert "newer broker, or" not in text
    assert "--via producer" not in text
    assert outcome.exit_code != ExitCode.OK


def test_streams_need_them(invoke: Invoke, emulated: Scene) -> None:
    code, document = run(invoke, emulated, "doctor", "--for", "streams")
    assert code == ExitCode.FINDINGS
    assert "brokers_without_transactions" in {row["code"] for row in document["data"]["rows"]}


def test_an_old_kafka_is_still_to_be_upgraded(invoke: Invoke) -> None:
    """Without APIs that came later its age is the reason."""
    scene = built()
    scene.brokers.left_out = dict.fromkeys(scene.brokers.state.nodes, frozenset(range(61, 600)))
    with scene.brokers:
        outcome = invoke("txn", "list", *scene.flags, **scene.surroundings)
    assert "newer broker" in outcome.stderr
