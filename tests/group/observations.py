"""A group that is ready for exactly-once, and the parts from which tests of the gates make one that is not."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from eosctl.core.brokers import KnownBrokers
from eosctl.core.configs.fold import ConfigState, ConnectorState
from eosctl.core.offsets.findings import AbortedOffset
from eosctl.core.records import Record, TopicDescription
from eosctl.core.versions import BrokerFeatures
from eosctl.core.workers.modes import Mode, UpgradeWorker
from eosctl.group.observation.rules import Observation, ObservedConnector, RightsSeen, WorkerFile


def topic(name: str, partitions: int = 1, policy: str | None = "compact") -> TopicDescription:
    return TopicDescription(name, "id", partitions, 3, {} if policy is None else {"cleanup.policy": policy})


def worker(**changes: Any) -> UpgradeWorker:
    values = {"leader": True, "version": "4.3.1", "health": "healthy", **changes}
    return UpgradeWorker("http://w0:8083", values.pop("mode", Mode.DISABLED), **values)


SOURCE = ObservedConnector("c", "source", {}, {"connector": "RUNNING", "task 0": "RUNNING"}, ())


def good() -> Observation:
    return Observation(
        target=Mode.ENABLED,
        group_state="Stable",
        workers=(worker(),),
        config_topic="configs",
        offset_topic="offsets",
        cluster_ids={"http://w0:8083": "k"},
        kafka_cluster_id="k",
        topics={
            "configs": TopicDescription("configs", "id", 1, 3, {"cleanup.policy": "compact"}),
            "offsets": TopicDescription("offsets", "id", 25, 1, {"cleanup.policy": "compact"}),
        },
        open_transactions=(),
        config_state=ConfigState(-1, {}, ()),
        differing_connectors=(),
        connectors=(SOURCE,),
        group_id="g",
        aborted_offsets=(),
        stale_offsets=(),
        max_transaction_timeout_ms=900_000,
        crowding={"c": 1},
        unknown_ids=frozenset(),
        rival_groups={},
        rights=RightsSeen(judged=12),
        brokers=KnownBrokers({1: BrokerFeatures({}, {}, frozenset({22, 24, 26, 61, 65, 66}))}),
    )


def broken_set() -> ConfigState:
    return ConfigState(1, {"c": ConnectorState("c", config={}, task_count=2, inconsistent=True)}, ())


def source(**changes: Any) -> tuple[ObservedConnector, ...]:
    return (replace(SOURCE, **changes),)


def aborted(value: bytes = b"{}", *, key: bytes = b'["c",{"f":1}]') -> tuple[AbortedOffset, ...]:
    return (AbortedOffset(Record("offsets", 0, 5, 0, key, value), None),)


ENABLED = (worker(mode=Mode.ENABLED),)
TWO_WORKERS = (worker(), worker(leader=False))
FLUSHED = WorkerFile("w.properties", {"offset.flush.interval.ms": "10000"})
CURE = {"admin.override.retry.backoff.ms": "10", "admin.override.retry.backoff.max.ms": "10"}
INTERVAL = {"transaction.boundary": "INTERVAL", "transaction.boundary.interval.ms": "30000"}
