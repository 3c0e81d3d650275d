"""Something to fence: a broker that speaks the protocol, a worker, a config topic, and the App that reaches them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eosctl.core.client_settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.events import Event
from eosctl.ops.app import App
from eosctl.ops.fence import apply_fence, plan_fence
from eosctl.ops.fence_gather import FenceRequest
from eosctl.profiles import Target
from eosctl.report import Report
from tests.fakes.broker import FakeCluster
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.config_cluster import FakeCluster as ConfigCluster
from tests.fakes.transactions import FakeTaskWorker


@dataclass
class Stage:
    """A cluster, a worker, a config topic, and the App that reaches them."""

    cluster: FakeCluster
    worker: FakeTaskWorker = field(default_factory=FakeTaskWorker)
    config: ConfigCluster = field(default_factory=ConfigCluster)
    events: list[Event] = field(default_factory=list)
    group_id: str | None = "g"
    timeout_s: float = 20.0

    def app(self) -> App:
        client = ClientSettings(self.cluster.bootstrap_servers, sasl_username="alice")
        target = Target(client=client, connect_urls=("http://user:pw@w1:8083",), group_id=self.group_id)
        return App(
            target,
            Deadline.after(self.timeout_s),
            Path("unused"),
            on_event=self.events.append,
            open_topics=self.config.doors()["open_topics"],
            open_worker=lambda _app, _url: self.worker,  # type: ignore[arg-type,return-value]
        )

    def plan(self, *ids: str, **options: Any) -> Report:
        app = self.app()
        return plan_fence(app, FenceRequest(ids, **options)).report(app)

    def fence(self, *ids: str, **options: Any) -> Report:
        app = self.app()
        return apply_fence(app, plan_fence(app, FenceRequest(ids, **options)))


@contextmanager
def fence_stage() -> Iterator[Stage]:
    """Ids g-c-0 (empty), g-c-1 (a transaction is open on t-0), g-d-0 and a leader's; two brokers."""
    with FakeCluster(brokers=2) as cluster:
        state = cluster.state
        state.transactions["g-c-0"] = FakeTransaction(1, 4)
        state.open_transaction("g-c-1", ("t", 0), epoch=8)
        state.transactions["g-d-0"] = FakeTransaction(3, 0)
        state.transactions["connect-cluster-g"] = FakeTransaction(5, 0)
        yield Stage(cluster)


def outcomes(report: Report) -> dict[str, str]:
    return {str(row["transactional_id"]): str(row["outcome"]) for row in report.rows}


def codes(report: Report) -> list[str]:
    return [problem.code for problem in report.problems]


def row(report: Report, transactional_id: str) -> Any:
    return next(row for row in report.rows if row["transactional_id"] == transactional_id)
