"""A source connector in memory that really reads on from its offset, over the fakes of Connect and of topics.

Its source is a list of lines; when its task starts, it asks the store that Kafka would ask (no fallback), delivers what
comes after that position, and commits the new one at once, or only when it ends.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

from eosctl.app import App
from eosctl.core.java.json import encode_key, encode_offset
from eosctl.errors import ConnectError
from eosctl.offsets.switch.apply import apply_switch
from eosctl.offsets.switch.plan import SwitchRequest, plan_switch
from eosctl.report import Report
from tests.fakes.connectors import FakeConnector
from tests.fakes.faults import EVERY, Call, Kill
from tests.fakes.world import CONFIGS, OFFSETS, World

GLOBAL, OWN, NAME, URL = OFFSETS, "own", "c", "http://w0:8083"
KEY, PARTITION = b'["c",{"filename":"f"}]', {"filename": "f"}


@dataclass
class TopicOffsets:
    """A worker's offsets in topics, as Kafka 3.3 to 4.3 keep them; changes are known by REST's own spelling of keys."""

    world: SwitchWorld

    def read(self, connector: str) -> Sequence[Mapping[str, object]]:
        world = self.world
        topics = {GLOBAL, world.store()} & set(world.topics.topics)
        if not any(world.topics.newest(topic).get(world.key) for topic in topics):
            return []
        found = world.stored(world.store(), world.rest_key)
        return [{"partition": PARTITION, "offset": None if found is None else {"position": found}}]

    def alter(self, connector: str, offsets: Sequence[Mapping[str, object]]) -> None:
        """With exactly-once support deletions never reach the dedicated topic (3.8+)."""
        world = self.world
        for entry in offsets:
            key = encode_key(connector, cast("Mapping[str, object]", entry["partition"]))
            offset = cast("Mapping[str, object] | None", entry["offset"])
            value = None if offset is None else encode_offset(offset)
            world.time.later(world.late_s, partial(world.topics.put, GLOBAL, key, value))
            world.time.pass_until(world.time.now_s)
            if world.store() != GLOBAL and offset is None and world.connect.modes[URL] == "enabled":
                raise ConnectError("500: Request timed out")
            if world.store() != GLOBAL:
                world.topics.put(world.store(), key, value)


@dataclass
class SwitchWorld(World):
    """The connector `c` over `lines`; `delivered` is what its task has produced, `calls` what was asked of Connect.

    With `late_s` what REST changes is in the global topic only after so many seconds. `kill` is told of every call to
    Kafka and Connect before its effect, and of those that change something after it, too.
    """

    cluster_id: str = "memory-cluster"
    lines: list[str] = field(default_factory=lambda: ["one", "two", "three"])
    delivered: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    kill: Kill = field(default_factory=Kill)
    late_s: float = 0.0
    key: bytes = KEY
    rest_key: bytes = KEY
    uncommitted: tuple[set[str], int] = field(default=(set(), 0), init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.topics.add_topic(GLOBAL, 5)
        self.topics.add_topic(CONFIGS, 1)
        self.connect.offsets = TopicOffsets(self)
        self.place("RUNNING")
        self.run_task()
        self.connect.after("start_task", lambda _call: self.run_task())
        self.connect.after("end_task", lambda _call: self.commit())
        for call in ("set_state", "restart", "alter_offsets"):
            self.connect.before(call, self._note)
        for faults in (self.topics, self.connect):
            faults.before(EVERY, self.kill.tick)
        for changing in ("record", "write", "create"):
            self.topics.after(changing, self.kill.tick)
        for changing in ("put_connector_config", "set_state", "restart", "alter_offsets"):
            self.connect.after(changing, self.kill.tick)

    @property
    def flags(self) -> list[str]:
        """The global options that lead here, to the worker too."""
        return ["-b", "memory:9092", "-g", self.group_id, "-u", URL]

    def app(self, state_dir: Path | None = None, *, timeout_s: float = 5.0, **target: Any) -> App:
        """An App that names the worker."""
        return super().app(state_dir, timeout_s=timeout_s, **{"connect_urls": (URL,), **target})

    def place(self, state: str, **config: str) -> FakeConnector:
        """The connector has been in `state` for long, with this of its config changed; _ stands for the dots."""
        changes = {name.replace("_", "."): value for name, value in config.items()}
        before = self.connect.connectors[NAME].config if NAME in self.connect.connectors else {"file": "f"}
        made = self.connect.add(NAME, {**before, **changes}, state=state)
        self.keep_config(f"connector-{NAME}", {"properties": made.config})
        self.keep_config(f"target-state-{NAME}", {"state": made.target, "state.v2": made.target})
        return made

    def _note(self, call: Call) -> None:
        _url, _connector, *what = call.what
        words = {"set_state": "{}", "restart": "restart only_failed={}", "alter_offsets": "alter_offsets"}
        self.calls.append(words[call.method].format(*what))

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
        """Reads on from the stored position to the end, and commits."""
        self.deliver()
        self.commit()

    def deliver(self) -> None:
        """Reads on; until it commits, nobody but the task knows."""
        if "RUNNING" not in [task.state for task in self.connector.tasks.values()]:
            return
        store = self.store()
        if store not in self.topics.topics:
            self.topics.add_topic(store, 5)
        self.delivered += self.lines[self.stored(store, self.key) or 0 :]
        self.uncommitted = ({store, GLOBAL}, len(self.lines))

    def commit(self) -> None:
        """With a store of its own both topics get the new position."""
        (topics, position), self.uncommitted = self.uncommitted, (set(), 0)
        for topic in topics:
            self.topics.put(topic, self.key, encode_offset({"position": position}))


def switch(app: App, to: str = OWN) -> Report:
    """What `offsets switch` does."""
    return apply_switch(app, plan_switch(app, SwitchRequest(NAME, to)))


def outcomes(report: Report) -> dict[object, object]:
    """Step -> outcome."""
    return {row.step: row.outcome for row in report.rows}
