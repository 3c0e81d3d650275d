"""A source connector in memory that really reads on from its offset, over the fakes of Connect and of topics.

Its source is a list of lines; when it is resumed, its task asks the store that Kafka would ask (no fallback), delivers
what comes after that position, and stores the new one. `kill_at` breaks the n-th call from outside off, like kill -9.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from eosctl.core.client_settings import ClientSettings
from eosctl.core.java_json import encode_key, encode_offset
from eosctl.deadline import Deadline
from eosctl.errors import ConnectError
from eosctl.ops.app import App
from eosctl.profiles import Target
from tests.fakes.clock import FakeTime
from tests.fakes.connect_before import FILE_SOURCE, FakeConnect, FakeConnector, FakeConnectWorker, FakeGroups
from tests.fakes.faults import EVERY, KilledError
from tests.fakes.topics import FakeTopicStore

GLOBAL, CONFIGS, NAME, URL = "connect-offsets", "connect-configs", "c", "http://w0:8083"
KEY, PARTITION = b'["c",{"filename":"f"}]', {"filename": "f"}


class TickingWorker(FakeConnectWorker):
    """A worker that keeps the config topic, and offsets in topics as Kafka 3.3 to 4.3 do."""

    def __init__(self, world: SwitchWorld) -> None:
        super().__init__(world.connect, URL)
        self.world = world

    def connectors(self) -> Mapping[str, Mapping[str, object]]:
        self.world.tick()
        return super().connectors()

    def put_connector_config(self, connector: str, config: Mapping[str, str]) -> None:
        self.world.tick()
        super().put_connector_config(connector, config)
        self.world.keep_config(connector)
        self.world.tick()

    def set_state(self, connector: str, verb: str) -> None:
        self.world.tick()
        super().set_state(connector, verb)
        self.world.calls.append(verb)
        if verb == "resume" and self.world.task_fails:
            self.world.connector.failed.add(0)
        elif verb == "resume":
            self.world.run_task()
        self.world.tick()

    def restart(self, connector: str, *, only_failed: bool = True) -> None:
        super().restart(connector, only_failed=only_failed)
        self.world.calls.append(f"restart only_failed={only_failed}")
        self.world.run_task()

    def offsets(self, connector: str) -> Sequence[Mapping[str, object]]:
        self.world.tick()
        topics = {GLOBAL, self.world.store()} & set(self.world.topics.topics)
        if not any(self.world.topics.newest(topic).get(self.world.key) for topic in topics):
            return []
        found = self.world.stored(self.world.store(), self.world.rest_key)
        return [{"partition": PARTITION, "offset": None if found is None else {"position": found}}]

    def alter_offsets(self, connector: str, offsets: Sequence[Mapping[str, object]]) -> None:
        """Keys in REST's own spelling; with exactly-once support deletions never reach the dedicated topic (3.8+)."""
        super().alter_offsets(connector, offsets)
        self.world.calls.append("alter_offsets")
        for entry in offsets:
            key = encode_key(connector, cast("Mapping[str, object]", entry["partition"]))
            offset = cast("Mapping[str, object] | None", entry["offset"])
            value = None if offset is None else encode_offset(offset)
            if self.world.late_s:
                self.world.time.later(self.world.late_s, partial(self.world.topics.put, GLOBAL, key, value))
            else:
                self.world.topics.put(GLOBAL, key, value)
            if self.world.store() != GLOBAL and offset is None and self.world.connect.modes[URL] == "enabled":
                raise ConnectError("500: Request timed out")
            if self.world.store() != GLOBAL:
                self.world.topics.put(self.world.store(), key, None if offset is None else encode_offset(offset))


@dataclass
class SwitchWorld:
    """The connector `c` over `lines`; `delivered` is what its task has produced.

    With `late_s` what REST changes is in the global topic only after so many seconds.
    """

    lines: list[str] = field(default_factory=lambda: ["one", "two", "three"])
    delivered: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    kill_at: int | None = None
    task_fails: bool = False
    late_s: float = 0.0
    ticks: int = 0
    key: bytes = KEY
    rest_key: bytes = KEY
    time: FakeTime = field(default_factory=lambda: FakeTime(1_700_000_000.0))

    def __post_init__(self) -> None:
        self.connect = FakeConnect()
        self.groups = FakeGroups(self.connect)
        self.topics = FakeTopicStore(cluster_id="memory-cluster")
        self.topics.before(EVERY, lambda _call: self.tick())
        for changing in ("record", "write", "create"):
            self.topics.after(changing, lambda _call: self.tick())
        self.topics.add_topic(GLOBAL, 5)
        self.topics.add_topic(CONFIGS, 1)
        self.connect.connectors[NAME] = FakeConnector({"connector.class": FILE_SOURCE, "file": "f", "name": NAME})
        self.keep_config(NAME)
        self.run_task()

    def app(self, tmp_path: Any, **target: Any) -> App:
        """An App that looks at this world."""
        client = ClientSettings(bootstrap_servers=("memory:9092",))
        given = {"client": client, "connect_urls": (URL,), "group_id": "g", **target}
        clock = self.time.clock()
        deadline = Deadline.after(5, clock)
        return App(target=Target(**given), deadline=deadline, state_dir=tmp_path, clock=clock, **self.doors())

    def doors(self) -> dict[str, Any]:
        """App's open_* callables."""
        return {
            "open_topics": lambda _app: self.topics,
            "open_worker": lambda _app, _url: TickingWorker(self),
            "open_transactions": self.groups.open,
        }

    @property
    def surroundings(self) -> dict[str, Any]:
        """Keyword arguments of `invoke`."""
        return {"doors": self.doors(), "clock": self.time.clock()}

    def tick(self) -> None:
        """One call from outside; the process dies at the `kill_at`-th."""
        self.ticks += 1
        if self.ticks == self.kill_at:
            raise KilledError

    def keep_config(self, connector: str) -> None:
        """What the herder writes into the config topic."""
        properties = {"properties": self.connect.connectors[connector].config}
        self.topics.put(CONFIGS, f"connector-{connector}".encode(), json.dumps(properties).encode())

    @property
    def connector(self) -> FakeConnector:
        return self.connect.connectors[NAME]

    def store(self) -> str:
        """The topic that the task reads its offset from."""
        return self.connector.config.get("offsets.storage.topic", GLOBAL)

    def stored(self, topic: str, key: bytes) -> int | None:
        """The position in a topic."""
        value = self.topics.newest(topic).get(key) if topic in self.topics.topics else None
        return None if value is None else int(json.loads(value)["position"])

    def run_task(self) -> None:
        """Reads on from the stored position to the end; with a store of its own both topics get the new position."""
        if self.connector.state != "RUNNING":
            return
        if self.store() not in self.topics.topics:
            self.topics.add_topic(self.store(), 5)
        self.delivered += self.lines[self.stored(self.store(), self.key) or 0 :]
        for topic in {self.store(), GLOBAL}:
            self.topics.put(topic, self.key, encode_offset({"position": len(self.lines)}))
