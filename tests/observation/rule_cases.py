"""How the tests of rules over an observation ask them, and what of it they change."""

from __future__ import annotations

from typing import Any

from eosctl.core.findings import Finding
from eosctl.group.observation.rules import Observation, WorkerFile
from eosctl.observation.connectors.rules import Rule
from tests.group.observations import source

TIMEOUT = "producer.override.transaction.timeout.ms"
OWN_TOPIC = {"offsets.storage.topic": "mine"}
DAY_MS = 24 * 3_600_000
AGES_THAT_PROVE_NOTHING: list[dict[str, Any]] = [
    {"looked_ms": None},
    {"task_sets_ms": {}},
    {"task_sets_ms": {"c": -1}},
]
UNKNOWN = {"unknown_ids": frozenset({"g-c-0"}), "task_sets_ms": {"c": 0}, "looked_ms": 6 * DAY_MS}
REFUSED = "The connector does not support exactly-once"
MIRRORED = (
    "MirrorSourceConnector can only provide exactly-once guarantees when its source consumer is configured with "
    "isolation.level set to 'read_committed'; otherwise, records from aborted and uncommitted transactions will be "
    "replicated from the source cluster to the target cluster."
)
UNDECLARED = "The connector does not implement the API required for preflight validation of exactly-once"


def found(rule: Rule, seen: Observation) -> list[Finding]:
    return [finding for connector in seen.connectors or () for finding in rule(connector, seen)]


def configured(**config: str) -> dict[str, Any]:
    return {"connectors": source(config=config)}


def required(text: str) -> dict[str, Any]:
    return {"connectors": source(support_errors=(text,), config={"exactly.once.support": "Required"})}


def file(**properties: str) -> WorkerFile:
    return WorkerFile("w.properties", properties)
