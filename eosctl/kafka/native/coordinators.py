"""FindCoordinator: one batched request where brokers can (v4, Kafka 3.0), else one request per key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar, cast

from eosctl.core.transactions import Coordinator, KafkaFault
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.faults import fault
from eosctl.kafka.native.connection import Connection
from eosctl.wire.cluster_messages import (
    FIND_COORDINATOR,
    FIND_COORDINATOR_BATCHED_FROM,
    FindCoordinatorRequest,
    FoundCoordinator,
    KeyType,
)
from eosctl.wire.error_codes import INVALID_REQUEST, NONE

K = TypeVar("K", bound=str)
BATCH = 1000
LONGEST_KEY_BYTES = 32_767  # a broker drops the connection over a longer string, and with it everybody's answers


def find_coordinators(cluster: Cluster, keys: Sequence[K], key_type: KeyType) -> dict[K, Coordinator | KafkaFault]:
    """Look up each key once: its coordinator, or the fault.

    Raises only when no broker can be asked.
    """
    answers: dict[str, Coordinator | KafkaFault] = {key: why for key in keys if (why := unfit_key(key))}
    fit = [key for key in keys if key not in answers]
    for start in range(0, len(fit), BATCH):
        batch = fit[start : start + BATCH]
        found = cluster.use_any(lambda connection, batch=batch: _ask(connection, batch, key_type))  # type: ignore[misc]
        answers.update(_by_key(found))
        left_out = (key for key in batch if key not in answers)
        answers.update(dict.fromkeys(left_out, fault(INVALID_REQUEST, "the broker's answer leaves this key out")))
    return cast("dict[K, Coordinator | KafkaFault]", answers)  # no response has a key that was not requested


def unfit_key(key: str) -> KafkaFault | None:
    """Return the fault of a key that can't be sent at all: not encodable, or longer than Kafka's strings; else None."""
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        return fault(INVALID_REQUEST, "the id is not valid UTF-8")
    if size > LONGEST_KEY_BYTES:
        return fault(INVALID_REQUEST, f"the id has {size} bytes, Kafka allows {LONGEST_KEY_BYTES}")
    return None


def _ask(connection: Connection, keys: Sequence[str], key_type: KeyType) -> list[FoundCoordinator]:
    if connection.version_of(FIND_COORDINATOR) >= FIND_COORDINATOR_BATCHED_FROM:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=tuple(keys))
        return list(connection.call(FIND_COORDINATOR, request).coordinators)
    answers = connection.pipeline(FIND_COORDINATOR, [FindCoordinatorRequest(key, key_type) for key in keys])
    return [
        FoundCoordinator(key, answer.node_id, answer.host, answer.port, answer.error_code, answer.error_message)
        for key, answer in zip(keys, answers, strict=True)
    ]


def _by_key(found: Sequence[FoundCoordinator]) -> Mapping[str, Coordinator | KafkaFault]:
    brokers: dict[tuple[int, str, int], Coordinator] = {}  # one object per broker, not one per id
    return {
        item.key: brokers.setdefault(item[1:4], Coordinator(item.node_id, item.host, item.port))
        if item.error_code == NONE
        else fault(item.error_code, item.error_message)
        for item in found
    }
