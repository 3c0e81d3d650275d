"""A group whose config topic a test spells out, for operations that look at it and around it and change nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from eosctl.core.records import OutRecord, Record, TopicDescription
from eosctl.errors import EosctlError
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.config_topic import CONFIG_TOPIC
from tests.fakes.connectors import FILE_SINK, FILE_SOURCE
from tests.fakes.faults import EVERY, Call, Faults
from tests.fakes.world import World

OF_TOPICS = ("cluster_id", "describe", "broker_settings", "bounds", "bounds_of", "read")
OF_CONNECT = ("validate", "plugins", "connectors")
HIDDEN = ("super.users", "allow.everyone.if.no.acl.found")


def compacted(name: str, partitions: int, *, replication_factor: int = 3, policy: str = "compact") -> TopicDescription:
    """A topic that is there from the start."""
    return TopicDescription(name, "id", partitions, replication_factor, {"cleanup.policy": policy})


@dataclass
class ConfigWorld(World):
    """`records` are those of the config topic, `aborted` come after them; `offsets` are of the global offsets topic.

    `open_from` is where a transaction on the config topic is open. `connectors` are name -> type, each with one task.
    `known_ids` are the transactional ids that coordinators know, None those that the workers' modes and tasks make.
    `faults` maps a call, or the URL of a worker, to the error that each such call raises, and a topic to that of each
    read. `hidden_settings` are those of HIDDEN that brokers have.
    """

    modes: dict[str, str] = field(default_factory=dict)
    cluster_id: str = "cluster-1"
    records: Sequence[Record] = ()
    aborted: Sequence[Record] = ()
    offsets: Sequence[Record] = ()
    aborted_offsets: Sequence[Record] = ()
    open_from: int | None = None
    described: Sequence[TopicDescription] = (compacted(CONFIG_TOPIC, 1),)
    connectors: Mapping[str, str] = field(default_factory=dict)
    configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    known_ids: Collection[str] | None = None
    max_timeout_ms: int = 900_000
    hidden_settings: Collection[str] = HIDDEN
    faults: Mapping[str, EosctlError] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        state = self.brokers.state
        state.settings |= {"transaction.max.timeout.ms": str(self.max_timeout_ms)}
        state.settings |= dict.fromkeys(self.hidden_settings, "")
        for topic in self.described:
            state.add_topic(topic.name, topic.partitions, topic.config, replication_factor=topic.replication_factor)
        for name, kind in self.connectors.items():
            connector_class = FILE_SINK if kind == "sink" else FILE_SOURCE
            self.connect.add(name, {"connector.class": connector_class, **self.configs.get(name, {})})
        for each in self._ids() if self.known_ids is None else self.known_ids:
            state.transactions[each] = FakeTransaction(*state.new_producer())
        if CONFIG_TOPIC in self.topics.topics:
            self._fill_config_topic()
        self._write(self.offsets)
        self._abort(self.aborted_offsets)
        for call, error in self.faults.items():
            self._refuse(call, error)

    def _ids(self) -> list[str]:
        """The leader has one unless it is disabled, and the tasks of an enabled group."""
        modes = set(self.modes.values())
        leader = [f"connect-cluster-{self.group_id}"] if modes - {"disabled"} else []
        tasks = [f"{self.group_id}-{name}-0" for name, kind in self.connectors.items() if kind == "source"]
        return [*leader, *(tasks if modes == {"enabled"} else ())]

    def _fill_config_topic(self) -> None:
        before = len(self.records) if self.open_from is None else self.open_from
        self._write(self.records[:before])
        if self.open_from is not None:
            self.topics.open_transaction(CONFIG_TOPIC, 0)
        self._write(self.records[before:])
        self._abort(self.aborted)

    def _abort(self, records: Sequence[Record]) -> None:
        if records:
            self.topics.write_aborted(_out(record) for record in records)

    def _write(self, records: Sequence[Record]) -> None:
        for record in records:
            self.topics.put(record.topic, record.key, record.value, partition=record.partition)

    def _refuse(self, call: str, error: EosctlError) -> None:
        def about_it(made: Call) -> None:
            if made.what[0] == call:
                raise error

        if call in self.modes:
            self.connect.before(EVERY, about_it)
            return
        if call in self.topics.topics:
            self.topics.before("read", about_it)
            return
        faults: Faults = self.brokers.calls
        if call in OF_TOPICS:
            faults = self.topics
        elif call in OF_CONNECT:
            faults = self.connect
        faults.fail_always(call, error)


def _out(record: Record) -> OutRecord:
    return OutRecord(record.topic, record.key, record.value, record.partition)
