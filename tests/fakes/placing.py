"""Source connectors in memory that really read on from their offsets, wherever a connector is created or moved to.

A connector's source is a file of lines. When its task starts, it asks the store that Kafka would ask (no fallback),
delivers what comes after that position, and commits the new one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from eosctl.app import App
from eosctl.core.java.json import encode_key, encode_offset
from eosctl.core.offsets.records import decode_key
from tests.fakes.connectors import FILE_SOURCE, FakeConnector
from tests.fakes.faults import EVERY, Call, Kill
from tests.fakes.world import CONFIGS, OFFSETS, World

URL = "http://w0:8083"
LINES = ["one", "two", "three"]


def key_of(name: str, file: str) -> bytes:
    """The key under which a connector keeps the offset of a file."""
    return encode_key(name, {"filename": file})


def position(number: int) -> bytes:
    """The value of an offset behind so many lines."""
    return encode_offset({"position": number})


@dataclass
class StoredOffsets:
    """A worker's offsets in topics, as Kafka 3.3 to 4.4 keep them: REST asks by its own spelling of keys."""

    world: PlaceWorld

    def read(self, connector: str) -> Sequence[Mapping[str, object]]:
        world = self.world
        store = world.store(connector)
        newest = {topic: world.topics.newest(topic) for topic in {OFFSETS, store} & set(world.topics.topics)}
        keys = [decode_key(raw) for each in newest.values() for raw, value in each.items() if value is not None]
        mine = {key.identity: key for key in keys if key.connector == connector}
        found = []
        for key in mine.values():
            partition = cast("Mapping[str, object]", key.partition)
            value = newest.get(store, {}).get(encode_key(connector, partition))
            found.append({"partition": partition, "offset": None if value is None else json.loads(value)})
        return found

    def alter(self, connector: str, offsets: Sequence[Mapping[str, object]]) -> None:
        raise NotImplementedError


@dataclass
class PlaceWorld(World):
    """`lines` are the files of all sources, `delivered` what each connector has produced.

    `stuck` are connectors whose tasks run and read nothing. `kill` is told of every call to Kafka and Connect before
    its effect, and of those that change something after it, too.
    """

    lines: dict[str, list[str]] = field(default_factory=lambda: {"f": [*LINES]})
    delivered: dict[str, list[str]] = field(default_factory=dict)
    stuck: set[str] = field(default_factory=set)
    kill: Kill = field(default_factory=Kill)
    offsets_topic: str = OFFSETS

    def __post_init__(self) -> None:
        super().__post_init__()
        self.topics.add_topic(OFFSETS, 5)
        self.topics.add_topic(CONFIGS, 1)
        self.connect.offsets = StoredOffsets(self)
        self.connect.after("start_task", lambda call: self.run_task(str(call.what[0])))
        for faults in (self.topics, self.connect):
            faults.before(EVERY, self.kill.tick)
        for changing in ("record", "write", "create"):
            self.topics.after(changing, self.kill.tick)
        for changing in ("put_connector_config", "create_connector", "set_state"):
            self.connect.after(changing, self.kill.tick)

    @property
    def flags(self) -> list[str]:
        """The global options that lead here, to the worker too."""
        return ["-b", "memory:9092", "-g", self.group_id, "-u", URL]

    def app(self, state_dir: Any = None, *, timeout_s: float = 30.0, **target: Any) -> App:
        """An App that names the worker."""
        return super().app(state_dir, timeout_s=timeout_s, **{"connect_urls": (URL,), **target})

    def place(self, name: str, file: str = "f", *, state: str = "RUNNING", **config: str) -> FakeConnector:
        """A connector that is there for long, and has read and committed what its file has; _ stands for the dots."""
        changes = {key.replace("_", "."): value for key, value in config.items()}
        made = self.connect.add(name, {"file": file, "tasks.max": "1", **changes}, state=state)
        self.keep_config(f"connector-{name}", {"properties": made.config})
        self.run_task(name, starts=state != "RUNNING")
        return made

    def store(self, name: str) -> str:
        """The topic that a connector's task reads its offset from."""
        known = self.connect.connectors.get(name)
        return self.offsets_topic if known is None else known.config.get("offsets.storage.topic", self.offsets_topic)

    def stored(self, name: str, file: str = "f", *, topic: str | None = None) -> int | None:
        """The position of a connector in a file."""
        topic = topic or self.store(name)
        value = self.topics.newest(topic).get(key_of(name, file)) if topic in self.topics.topics else None
        return None if value is None else int(json.loads(value)["position"])

    def run_task(self, name: str, *, starts: bool = False) -> None:
        """Read on from the stored position to the end, and commit; `starts`: whatever REST shows of its task."""
        known = self.connect.connectors.get(name)
        if known is None or known.config["connector.class"] != FILE_SOURCE or name in self.stuck:
            return
        if not starts and "RUNNING" not in [task.state for task in known.tasks.values()]:
            return
        file, store = known.config["file"], self.store(name)
        if store not in self.topics.topics:
            self.topics.add_topic(store, 5)
        lines = self.lines.get(file, [])
        self.delivered.setdefault(name, []).extend(lines[self.stored(name, file) or 0 :])
        for topic in {store, self.offsets_topic}:
            self.topics.put(topic, key_of(name, file), position(len(lines)))


def calls_of(world: PlaceWorld, *methods: str) -> list[Call]:
    """A list that gets each call of these methods of Connect from now on."""
    seen: list[Call] = []
    for method in methods:
        world.connect.before(method, seen.append)
    return seen
