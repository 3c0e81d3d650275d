"""A connector whose config names Kafka brokers of its own: two clusters in memory, and the doors that lead to each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from eosctl.app import App
from tests.fakes.config_topic import created
from tests.fakes.rescue_scene import Scene
from tests.fakes.world import World

SERVERS = "own-brokers:9092"
OWN_BROKERS = {f"{kind}.override.bootstrap.servers": SERVERS for kind in ("producer", "consumer", "admin")}
SECRET = {"producer.override.sasl.jaas.config": "${file:/p:q}", "consumer.override.sasl.jaas.config": "${file:/p:q}"}


def doors_to(here: World, there: World) -> dict[str, Any]:
    """App's open_* callables: brokers called SERVERS are those of `there`."""

    def at(app: App) -> World:
        return there if app.target.require_client().bootstrap_servers == (SERVERS,) else here

    return {
        "open_topics": lambda app: at(app).topics.open(app),
        "open_transactions": lambda app: at(app).brokers.open_transactions(app),
        "open_worker": here.open_worker,
    }


@dataclass
class FarScene(Scene):
    """The connector to be rescued writes to `there`: its ids are in use there, and none is known here."""

    there: World = field(default_factory=lambda: World(cluster_id="own-cluster"))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.there.brokers.state.transactions = self.brokers.state.transactions
        self.brokers.state.transactions = {}
        self.configure(OWN_BROKERS)

    def configure(self, config: dict[str, str]) -> None:
        """Another config of the connector, with the tasks as they are."""
        self.connector.config = {**self.connector.config, **config}
        key, value = created("c", 2, config=config)[0]
        self.keep_config(key, value)

    def take_id(self, task: int, *, timeout_ms: int = 60_000) -> None:
        """Tasks take their ids there; as long as nothing is there, the scene is being made."""
        ours = self.brokers.state.transactions
        self.brokers.state.transactions = self.there.brokers.state.transactions or ours
        try:
            super().take_id(task, timeout_ms=timeout_ms)
        finally:
            self.brokers.state.transactions = ours

    def timeouts(self) -> list[int]:
        """Of the ids there."""
        return [self.there.brokers.state.transactions[f"g-c-{task}"].timeout_ms for task in range(3)]

    def doors(self) -> dict[str, Any]:
        return doors_to(self, self.there)
