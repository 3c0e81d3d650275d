"""Transactions to look at and to abort: brokers in memory, their topics, and an App that reaches them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eosctl.app import App
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.transaction_log import TOPIC
from eosctl.deadline import Deadline
from eosctl.target import Target
from tests.fakes.broker import FakeCluster
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.clock import PLENTY_S
from tests.fakes.topics import FakeTopicStore

HOUR_MS = 3_600_000


@dataclass
class Stage:
    """A cluster, its topics, and the App that reaches them."""

    cluster: FakeCluster
    topics: FakeTopicStore
    group_id: str | None = "g"
    events: list[Any] = field(default_factory=list)
    timeout_s: float = PLENTY_S

    @property
    def app(self) -> App:
        return App(
            Target(client=ClientSettings(self.cluster.bootstrap_servers), group_id=self.group_id),
            Deadline.after(self.timeout_s),
            Path("unused"),
            on_event=self.events.append,
            open_topics=self.topics.open,
            open_transactions=self.cluster.open_transactions,
        )

    def hang(self, producer_id: int, topic: str = "t", partition: int = 0, *, age_ms: int = HOUR_MS) -> None:
        """Makes a producer's transaction on a partition as old as that."""
        producer = self.cluster.state.log(topic, partition).producers[producer_id]
        producer.last_timestamp_ms = int(time.time() * 1000) - age_ms


def txn_stage() -> Stage:
    """g-c-0 idle; g-c-1 with an open transaction on t-0 and t-1; a leader; something else."""
    cluster = FakeCluster(brokers=2)
    state = cluster.state
    state.add_topic(TOPIC, 50)
    state.keeps_log = True
    state.transactions["g-c-0"] = FakeTransaction(1, 4)
    state.open_transaction("g-c-1", ("t", 0), ("t", 1), epoch=8)
    state.transactions["connect-cluster-g"] = FakeTransaction(5, 0, "CompleteCommit")
    state.transactions["zzz"] = FakeTransaction(6, 0)
    return Stage(cluster, FakeTopicStore(state))
