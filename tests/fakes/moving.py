"""Two Connect groups in memory, on one Kafka cluster or on two, and a source connector that moves between them.

Its source is a list of lines. A task that starts reads on from the offset that its side has for its name there, and
writes each line with its offset in one transaction, as Connect does; `delivered` is what readers of committed records
have got, on either side.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.configs.records import Selection
from eosctl.core.java.json import encode_key, encode_offset
from eosctl.core.offsets.records import OffsetKey, decode_key
from eosctl.core.offsets.views import live
from eosctl.core.records import OutRecord
from eosctl.core.workers.access import ConnectAccess
from eosctl.core.workers.url import parse_worker_url
from eosctl.move.apply import prepare_move
from eosctl.move.journal import Direction
from eosctl.move.plan import MoveRequest
from eosctl.report import Report
from eosctl.target import Target
from tests.fakes.connect import FakeConnect
from tests.fakes.connect_worker import FakeConnectWorker
from tests.fakes.connectors import FakeConnector
from tests.fakes.faults import EVERY, Call, Kill
from tests.fakes.topics import FakeTopicStore
from tests.fakes.world import World

NAME, HERE, THERE = "c", "http://w0:8083", "http://far:8083"
OUT, OWN, PROFILE = "out", "own", "far"
PARTITION = {"filename": "f"}
_SERVERS = {PROFILE: "far:9092", None: "memory:9092"}
_CHANGING = ("put_connector_config", "set_state", "restart", "alter_offsets", "create_connector", "delete_connector")


@dataclass
class MovingSide:
    """One side: its group, the world of its Kafka cluster, and the topics of its workers; `worlds` are by brokers."""

    world: World
    connect: FakeConnect
    configs: str
    offsets: str
    profile: str | None
    worlds: dict[str, World] = field(default_factory=dict)

    @property
    def target(self) -> dict[str, Any]:
        """The members of a Target that lead there."""
        url = next(iter(self.connect.modes), "http://nobody:8083")
        return {
            "client": ClientSettings((_SERVERS[self.profile],)),
            "group_id": self.connect.group_id,
            "config_topic": self.configs,
            "offset_topic": self.offsets,
            "connect_urls": (url,),
            "connect": ConnectAccess(named=frozenset({parse_worker_url(url).origin})),
        }

    def keep_config(self, key: str, value: object) -> None:
        """A record of the herder's."""
        self.world.topics.put(self.configs, key.encode(), None if value is None else json.dumps(value).encode())

    def store(self, name: str) -> str:
        """The topic that the connector's tasks read their offsets from."""
        return self.connect.connectors[name].config.get("offsets.storage.topic", self.offsets)

    def is_running(self, name: str) -> bool:
        """Whether it has a task that runs."""
        known = self.connect.connectors.get(name)
        return known is not None and any(task.state == "RUNNING" for task in known.tasks.values())

    def topics(self, name: str) -> FakeTopicStore:
        """The topics of the Kafka cluster that the connector writes to, and keeps its own offsets in."""
        servers = self.connect.connectors[name].config.get("producer.override.bootstrap.servers")
        return (self.worlds[servers] if servers else self.world).topics

    def position(self, topic: str, name: str) -> int | None:
        """The stored position of the only source partition."""
        key, topics = encode_key(name, PARTITION), self.topics(name)
        value = topics.newest(topic).get(key) if topic in topics.topics else None
        return None if value is None else int(json.loads(value)["position"])

    def read(self, name: str) -> Sequence[Mapping[str, object]]:
        """What `GET /connectors/NAME/offsets` answers."""
        topic, topics, found = self.store(name), self.topics(name), []
        records = topics.records(topic) if topic in topics.topics else []
        for record in {each.key: each for each in records}.values():
            key = decode_key(record.key)
            if isinstance(key, OffsetKey) and key.connector == name and live(record) is not None:
                found.append({"partition": dict(key.partition or {}), "offset": json.loads(record.value or b"null")})
        return found


@dataclass
class MovingWorld:
    """`clusters` is 1 or 2; `mode` is that of all workers. `lines` grow while nobody looks.

    `config` are further settings of the connector, `groups` those here and there, and `names` what it is called on each
    side. `both` is set should two sides ever have a task that runs. `kill` is told of every call before its effect, and
    of those that change something after it, too.
    """

    clusters: int = 1
    mode: str = "enabled"
    lines: list[str] = field(default_factory=lambda: ["one", "two", "three"])
    delivered: list[str] = field(default_factory=list)
    both: bool = False
    kill: Kill = field(default_factory=Kill)
    config: dict[str, str] = field(default_factory=dict)
    groups: tuple[str, str] = ("g", "h")
    names: dict[str | None, str] = field(default_factory=lambda: {None: NAME, PROFILE: NAME})

    def __post_init__(self) -> None:
        world = World({HERE: self.mode}, cluster_id="one", group_id=self.groups[0])
        self.here = MovingSide(world, world.connect, "connect-configs", "connect-offsets", None)
        if self.clusters == 1:
            other, connect = world, world.other_group(self.groups[1], THERE)
            connect.modes[THERE] = self.mode
            self.there = MovingSide(other, connect, "far-configs", "far-offsets", PROFILE)
        else:
            other = World({THERE: self.mode}, cluster_id="two", group_id=self.groups[1], time=world.time)
            self.there = MovingSide(other, other.connect, "connect-configs", "connect-offsets", PROFILE)
        for side in self.sides:
            side.worlds = {_SERVERS[each.profile]: each.world for each in self.sides}
            side.world.topics.add_topic(side.configs, 1)
            side.world.topics.add_topic(side.offsets, 5)
            side.world.topics.add_topic(OUT, 2, {"cleanup.policy": "delete"})
            side.connect.keep_config = side.keep_config
            side.connect.offsets = _Offsets(side)
            side.connect.after("start_task", partial(self._started, side))
        self.place("RUNNING", None, topic=OUT, file="f", **self.config)
        self.run(self.here)
        faults = [each for side in self.sides for each in (side.world.topics, side.connect, side.world.batches)]
        for faulty in {id(each): each for each in faults}.values():
            faulty.before(EVERY, self.kill.tick)
        for calls in {id(side.world.brokers.calls): side.world.brokers.calls for side in self.sides}.values():
            calls.before("fence", self.kill.tick)
            calls.after("fence", self.kill.tick)
        for topics in {id(side.world.topics): side.world.topics for side in self.sides}.values():
            for changing in ("record", "write", "create"):
                topics.after(changing, self.kill.tick)
        for side in self.sides:
            for changing in _CHANGING:
                side.connect.after(changing, self.kill.tick)

    @property
    def sides(self) -> tuple[MovingSide, MovingSide]:
        """Here, there."""
        return self.here, self.there

    def place(self, state: str, side: MovingSide | None = None, **config: str) -> FakeConnector:
        """The connector has been in `state` for long, with this of its config changed; _ stands for the dots."""
        side = side or self.here
        name = self.names[side.profile]
        changes = {key.replace("_", "."): value for key, value in config.items()}
        before = side.connect.connectors[name].config if name in side.connect.connectors else {}
        made = side.connect.add(name, {**before, **changes}, state=state)
        side.keep_config(f"connector-{name}", {"properties": made.config})
        side.keep_config(f"target-state-{name}", {"state": made.target, "state.v2": made.target})
        return made

    def _started(self, side: MovingSide, call: Call) -> None:
        if call.what[0] == self.names[side.profile]:
            self.run(side)

    def run(self, side: MovingSide) -> None:
        """The task on this side, if there is one, reads on to the end."""
        name = self.names[side.profile]
        self.both |= all(each.is_running(self.names[each.profile]) for each in self.sides)
        if not side.is_running(name):
            return
        topics, store = side.topics(name), side.store(name)
        if store not in topics.topics:
            topics.add_topic(store, 5)
        side.connect.connectors[name].topics.add(OUT)
        at = side.position(store, name) or 0
        for number, line in enumerate(self.lines[at:], at + 1):
            self._commit(side, name, store, number, line)

    def _commit(self, side: MovingSide, name: str, store: str, number: int, line: str) -> None:
        topics, key = side.topics(name), encode_key(name, PARTITION)
        offset = OutRecord(store, key, encode_offset({"position": number}))
        records = [OutRecord(OUT, line.encode(), line.encode()), offset]
        if self.mode != "enabled":
            for record in records:
                topics.put(record.topic, record.key, record.value)
        else:
            transactional_id = f"{side.connect.group_id}-{name}-0"
            producer = topics.take_id(transactional_id)
            for record in records:
                topics.state.write_in(transactional_id, producer, record, topics.partition_of(record))
            known = topics.state.transactions[transactional_id]
            known.producer_epoch += 1  # as from KIP-890 on: each transaction has an epoch of its own
            epoch = known.producer_epoch
            topics.state.end_transaction(transactional_id, (producer[0], epoch), commit=True)
        self.delivered.append(line)

    def app(self, state_dir: Path, *, timeout_s: float = 60.0) -> App:
        """An App for this side; the profile PROFILE leads to the other one."""
        app = self.here.world.app(state_dir, timeout_s=timeout_s, **self.here.target)
        doors = {**self.doors(), "target_of": self.target_of}
        return replace(app, **doors)

    def target_of(self, profile: str) -> Target:
        """The Target of a profile."""
        assert profile == PROFILE
        return Target(**self.there.target, profile=profile)

    def doors(self) -> dict[str, Any]:
        """App's open_* callables: the brokers of the profile are those of the other side."""

        def at(app: App) -> World:
            servers = app.target.require_client().bootstrap_servers
            return self.there.world if servers == (_SERVERS[PROFILE],) else self.here.world

        return {
            "open_topics": lambda app: at(app).topics.open(app),
            "open_transactions": lambda app: at(app).brokers.open_transactions(app),
            "open_batches": lambda app: at(app).batches.open(app),
            "open_worker": self.open_worker,
            "open_acls": lambda app: at(app).acls,
        }

    def open_worker(self, app: App, url: str) -> FakeConnectWorker:
        """App's door to the workers of both groups."""
        text = parse_worker_url(url).text
        side = self.there if text in {THERE, *self.there.connect.modes} else self.here
        return side.connect.open_worker(app, url)

    def left(self, state_dir: Path) -> str:
        """All that another process can find."""
        worlds = {id(side.world): side.world for side in self.sides}.values()
        return repr(([world.left(state_dir) for world in worlds], self.there.connect, self.lines, self.delivered))


@dataclass
class _Offsets:
    """The offsets of a side's connectors, as its workers read them."""

    side: MovingSide

    def read(self, connector: str) -> Sequence[Mapping[str, object]]:
        return self.side.read(connector)

    def alter(self, connector: str, offsets: Sequence[Mapping[str, object]]) -> None:
        raise AssertionError(f"a move writes no offsets of {connector} by REST: {offsets}")


def move(app: App, direction: Direction = Direction.THERE, **request: Any) -> Report:
    """What `connectors move` does."""
    to = None if direction is not Direction.THERE or request.get("resume") else PROFILE
    plan = prepare_move(app, Selection((NAME,)), MoveRequest(direction, **{"to": to, **request}))
    return plan.report() if plan.apply is None else plan.apply()


def outcomes(report: Report) -> dict[str, str]:
    """Step -> outcome."""
    return {str(row.step): row.outcome for row in report.rows}


def while_stopped(world: MovingWorld) -> None:
    """The source gets a line whenever a state is asked for, so that the next start has something to read."""
    world.here.connect.after("set_state", lambda _call: world.lines.append(f"line {len(world.lines)}"))
    if world.there.connect is not world.here.connect:
        world.there.connect.after("set_state", lambda _call: world.lines.append(f"line {len(world.lines)}"))


def settle(world: MovingWorld) -> None:
    """Both sides read on; at most one of them has a task."""
    world.lines.append("last")
    for side in world.sides:
        world.run(side)
