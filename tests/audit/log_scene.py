"""A cluster in memory, and tasks that write to it as exactly-once tasks do, and as they must not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from eosctl.core.ids import ProducerId
from eosctl.core.records import Batch, OutRecord, Record
from tests.conftest import Invoke, Outcome
from tests.fakes.clock import FakeTime
from tests.fakes.world import OFFSETS, World

NOW_S = 1_700_100_000.0
START_MS = 1_700_000_000_000
OUT, OTHER_OUT, OWN = "out", "out-2", "own-offsets"
KEY = b'["c",{"task":"0"}]'


@dataclass
class Task:
    """A producer of transactions under an id of its own."""

    scene: LogScene
    transactional_id: str
    producer_id: int = -1
    epoch: int = -1

    def start(self) -> Task:
        """Takes its id, and fences who had it."""
        _error, self.producer_id, self.epoch = self.scene.state.init_producer_id(self.transactional_id, 60_000)
        return self

    def write(self, topic: str, key: bytes, value: bytes | None, *, partition: int = 0) -> None:
        """A record in its open transaction, whether or not brokers would take it."""
        self.scene.write_in(self, OutRecord(topic, key, value), partition)

    def end(self, *, commit: bool = True) -> None:
        """The end of its transaction, and what every end brings from transaction version 2 on."""
        self.scene.end(self, commit=commit)

    def commit(self, *values: bytes, offset: bytes | None = b'{"n":1}', key: bytes = KEY, topic: str = OUT) -> None:
        """A transaction as tasks write it: records, then the source offset."""
        for value in values or (b"v",):
            self.write(topic, b"k", value)
        if key:
            self.write(self.scene.offsets_topic, key, offset)
        self.end()


@dataclass
class LogScene(World):
    """Connector c, with output topic OUT, in group g; its offsets are in the global topic, or in OWN.

    With `bumps` each transaction has an epoch of its own (transaction version 2).
    """

    time: FakeTime = field(default_factory=lambda: FakeTime(NOW_S))
    offsets_topic: str = OFFSETS
    bumps: bool = True
    config: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.state = self.brokers.state
        for topic, partitions in ((OFFSETS, 1), (OUT, 2), (OTHER_OUT, 1)):
            self.topics.add_topic(topic, partitions, {"cleanup.policy": "delete"})
        self.connect.add("c", {"topic": OUT, **self.config}, tasks=1).topics.add(OUT)

    def task(self, number: int = 0, connector: str = "c") -> Task:
        """A task of the group's."""
        return Task(self, f"g-{connector}-{number}").start()

    def write_in(self, task: Task, record: OutRecord, partition: int) -> None:
        """At once, with the task's epoch, be it a zombie's."""
        known = self.state.transactions[task.transactional_id]
        known.partitions.add((record.topic, partition))
        known.state, known.started_ms = "Ongoing", self.state.clock.now_ms()
        self.state.append(record, partition, (task.producer_id, task.epoch), transactional=True)

    def end(self, task: Task, *, commit: bool, but: tuple[str, int] | None = None) -> None:
        """Markers in every partition of the transaction; `but` one of them."""
        known = self.state.transactions[task.transactional_id]
        if self.bumps:
            task.epoch += 1
        marked = [self.state.log(*place) for place in known.partitions if place != but]
        for log in marked:
            self._mark(log, task, commit=commit)
        now_ms = max((log.batches[-1].max_timestamp_ms for log in marked), default=0)
        for log in (
            () if self.bumps else marked
        ):  # brokers write them at the same time, which tells what belongs together
            log.batches[-1] = log.batches[-1]._replace(first_timestamp_ms=now_ms, max_timestamp_ms=now_ms)
        known.partitions.clear()
        known.state = "CompleteCommit" if commit else "CompleteAbort"
        known.producer_epoch = max(known.producer_epoch, task.epoch)

    def _mark(self, log: object, task: Task, *, commit: bool) -> None:
        log.mark((task.producer_id, task.epoch), commit=commit)  # type: ignore[attr-defined]

    def plain(self, topic: str, key: bytes, value: bytes) -> Record:
        """A record of a producer without transactions."""
        return self.topics.put(topic, key, value, partition=0)

    @property
    def flags(self) -> list[str]:
        return ["-b", "memory:9092", "-g", "g", "-u", "http://w0:8083"]


Run = Callable[..., Outcome]


def run_on(scene: LogScene, invoke: Invoke) -> Run:
    """`run("-o", "json")` audits c from the beginning."""

    def run(*words: str) -> Outcome:
        since = () if "--since" in words else ("--since", "beginning")
        connector = () if "--connector" in words else ("--connector", "c")
        return invoke(*scene.flags, "audit", *connector, *since, *words, **scene.surroundings)

    return run


def batch(**values: object) -> Batch:
    """A batch of one record, transactional unless told otherwise."""
    given = {
        "topic": OUT, "partition": 0, "base_offset": 0, "producer_id": ProducerId(7), "producer_epoch": 0,
        "base_sequence": 0, "is_transactional": True, "is_control": False, "first_timestamp_ms": START_MS,
        "records": 1, "size_bytes": 80, **values,
    }  # fmt: skip
    given.setdefault("last_offset", given["base_offset"])
    given.setdefault("max_timestamp_ms", given["first_timestamp_ms"])
    return Batch(**given)  # type: ignore[arg-type]


MIRRORED, SOURCE = "A.src", "src"


def mirror_scene(*, bumps: bool = True) -> LogScene:
    """A MirrorSourceConnector m from topic SOURCE of the same cluster to MIRRORED."""
    scene = LogScene(bumps=bumps)
    for topic in (SOURCE, MIRRORED):
        scene.topics.add_topic(topic, 1, {"cleanup.policy": "delete"})
    config = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "A",
        "source.cluster.bootstrap.servers": "memory:9092",
        "topics": SOURCE,
    }
    scene.connect.add("m", config).topics.add(MIRRORED)
    return scene


def mirror(task: Task, last: int, records: int) -> None:
    """A transaction that copies `records` records, the last of which has offset `last` in the source."""
    key = b'["m",{"cluster":"A","partition":0,"topic":"src"}]'
    task.commit(*[b"v"] * records, topic=MIRRORED, key=key, offset=b'{"offset":%d}' % last)
