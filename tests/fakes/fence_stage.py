"""Something to fence: brokers in memory, a worker, a config topic, and the App that reaches them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eosctl.app import App
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.fence.gather import FenceRequest
from eosctl.fence.plan import apply_fence, plan_fence
from eosctl.report import Report, plain
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.world import CONFIGS, World

W1 = "http://w1:8083"


@dataclass
class Stage(World):
    """Group g; `asked_group` is the one that is named."""

    modes: dict[str, str] = field(default_factory=lambda: {W1: "enabled"})
    nodes: int = 2
    asked_group: str | None = "g"
    timeout_s: float = 20.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.topics.add_topic(CONFIGS, 1)

    def configs(self, pairs: Iterable[tuple[str, object]]) -> None:
        """More records of the herder's."""
        for key, value in pairs:
            self.keep_config(key, value)

    def app(self, state_dir: Path | None = None, *, timeout_s: float | None = None, **target: Any) -> App:
        """An App that names the worker with credentials."""
        client = ClientSettings(self.brokers.bootstrap_servers, sasl_username="alice")
        given = {"client": client, "connect_urls": ("http://user:pw@w1:8083",), "group_id": self.asked_group, **target}
        return super().app(state_dir, timeout_s=timeout_s or self.timeout_s, **given)

    def plan(self, *ids: str, **options: Any) -> Report:
        app = self.app()
        return plan_fence(app, FenceRequest(tuple(map(TransactionalId, ids)), **options)).report(app)

    def fence(self, *ids: str, **options: Any) -> Report:
        app = self.app()
        return apply_fence(app, plan_fence(app, FenceRequest(tuple(map(TransactionalId, ids)), **options)))


def fence_stage() -> Stage:
    """Ids g-c-0 (empty), g-c-1 (a transaction is open on t-0), g-d-0 and a leader's; two brokers."""
    stage = Stage()
    state = stage.brokers.state
    state.transactions["g-c-0"] = FakeTransaction(1, 4)
    state.open_transaction("g-c-1", ("t", 0), epoch=8)
    state.transactions["g-d-0"] = FakeTransaction(3, 0)
    state.transactions["connect-cluster-g"] = FakeTransaction(5, 0)
    return stage


def outcomes(report: Report) -> dict[str, str]:
    return {str(row.transactional_id): str(row.outcome) for row in report.rows}


def row(report: Report, transactional_id: str) -> Any:
    return next(plain(row) for row in report.rows if row.transactional_id == transactional_id)
