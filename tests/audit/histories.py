"""Histories of a connector's topics, as brokers write them, from a seed. Pure.

Connector c has tasks with source partitions of their own; each lives through transactions, restarts and aborts. Each
partition's leader has a clock of its own, and only markers have its time: what a record says of its own is arbitrary.
`tests/audit/cheats.py` puts into a history what no exactly-once connector can have written.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from itertools import pairwise

from eosctl.core.records import Place
from tests.audit.history_settings import Setting, any_setting

OUT, OFFSETS, UNREAD = "out", "connect-offsets", "unread"
START_MS = 1_700_000_000_000
LAST_EPOCH = 32_766
"""With which a producer may still write; then its coordinator gives it a new producer id."""
_OLD_MS, _FUTURE_MS = 1_000, 4_102_444_800_000


@dataclass(slots=True)
class Entry:
    """A record, or a marker (`commit`), as it is appended at `at_ms`, which no clock shows."""

    at_ms: float
    place: Place
    producer_id: int
    epoch: int
    commit: bool | None = None
    key: bytes = b"k"
    value: bytes | None = b"v"
    stamp_ms: int = 0
    is_transactional: bool = True


@dataclass(slots=True)
class Transaction:
    """What one transaction has; `source` are the offset keys that it commits."""

    transactional_id: str
    producer_id: int
    epoch: int
    begun_ms: float
    data: list[Entry] = field(default_factory=list)
    markers: dict[Place, Entry] = field(default_factory=dict)
    is_committed: bool = True
    is_own_epoch: bool = False

    @property
    def ended_ms(self) -> float:
        """When its last marker is written."""
        return max((each.at_ms for each in self.markers.values()), default=self.begun_ms)

    def places(self, topic: str) -> list[Place]:
        """Return its partitions of a topic."""
        return [place for place in self.markers if place[0] == topic]


@dataclass(slots=True)
class Producer:
    """A transactional id, as its coordinator knows it."""

    transactional_id: str
    producer_id: int
    epoch: int = 0
    former: list[int] = field(default_factory=list)


@dataclass
class History:
    """All that was written; `transactions` are those of connector c's tasks, `entries` those of everybody."""

    setting: Setting
    rng: random.Random
    entries: list[Entry] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    producers: dict[str, Producer] = field(default_factory=dict)
    open: list[Transaction] = field(default_factory=list)
    unnamed: set[int] = field(default_factory=set)
    ends_ms: float = START_MS
    cheated_ms: tuple[float, float] | None = None
    may_compact: bool = True
    offsets_topics: list[str] = field(default_factory=lambda: [OFFSETS])
    _producer_ids: int = 1000
    _leaders: dict[Place, tuple[int, int, float]] = field(default_factory=dict)
    _clocks: list[tuple[float, float]] = field(default_factory=list)
    _positions: dict[bytes, int] = field(default_factory=dict)

    def new_producer_id(self) -> int:
        """Return an id that nobody had."""
        self._producer_ids += 1
        return self._producer_ids

    def offset_place(self, key: bytes) -> Place:
        """Return the partition of an offset key."""
        return OFFSETS, sum(key) % self.setting.offsets_partitions

    def out_place(self) -> Place:
        """Return any output partition."""
        return OUT, self.rng.randrange(self.setting.partitions)

    def marker_ms(self, place: Place, at_ms: float) -> int:
        """Return the time by the clock of the partition's leader."""
        rng, setting = self.rng, self.setting
        if not self._clocks:
            half = setting.apart_ms / 2
            firsts = [rng.choice((-half, half, rng.uniform(-half, half))) for _ in range(3)]
            lasts = [rng.uniform(-half, half) if setting.drifts else each for each in firsts]
            self._clocks = list(zip(firsts, lasts, strict=True))
        if place not in self._leaders:
            moves = rng.uniform(START_MS, self.ends_ms) if setting.leaders_move else float("inf")
            self._leaders[place] = rng.randrange(3), rng.randrange(3), moves
        before, behind, moves = self._leaders[place]
        first, last = self._clocks[before if at_ms < moves else behind]
        share = (at_ms - START_MS) / max(self.ends_ms - START_MS, 1)
        return int(at_ms + first + (last - first) * share)

    def record_ms(self, at_ms: float) -> int:
        """Return a time as sources give it."""
        return self.rng.choice((int(at_ms), int(at_ms), int(at_ms) - 86_400_000, _OLD_MS, _FUTURE_MS))

    def logs(self) -> dict[Place, list[Entry]]:
        """Return the log of each partition, in the order in which it was appended."""
        found: dict[Place, list[Entry]] = {}
        for each in sorted(self.entries, key=lambda entry: entry.at_ms):
            found.setdefault(each.place, []).append(each)
        return found

    def write(
        self, transaction: Transaction, place: Place, at_ms: float, key: bytes = b"k", value: bytes | None = b"v"
    ) -> None:
        """Append a record of a transaction."""
        stamp_ms = int(at_ms) + self.rng.randrange(-50, 50) if place[0] != OUT else self.record_ms(at_ms)
        made = Entry(at_ms, place, transaction.producer_id, transaction.epoch, None, key, value, stamp_ms)
        transaction.data.append(made)
        self.entries.append(made)

    def end(self, transaction: Transaction, at_ms: float, *, commit: bool, epoch: int) -> float:
        """Append the markers of a transaction, and return when all are there."""
        setting, rng = self.setting, self.rng
        transaction.is_committed, transaction.is_own_epoch = commit, epoch > transaction.epoch
        places = list(dict.fromkeys(each.place for each in transaction.data))
        rng.shuffle(places)
        for place in places:
            delay_ms = rng.uniform(0.2, setting.spread_ms)
            if setting.late and rng.random() < 0.03:
                delay_ms += rng.uniform(1_000, 60_000)
            made = Entry(at_ms + delay_ms, place, transaction.producer_id, epoch, commit)
            transaction.markers[place] = made
            self.entries.append(made)
        return transaction.ended_ms

    def next_offset(self, key: bytes) -> bytes:
        """Return the offset of a source partition that comes after its last committed one."""
        self._positions[key] = self._positions.get(key, 0) + self.rng.randrange(1, 9)
        return b'{"position":%d}' % self._positions[key]


@dataclass
class Task:
    """A task of a connector: `keys` are the offset keys of its source partitions."""

    history: History
    connector: str
    number: int
    keys: list[bytes]
    at_ms: float
    group: str = "g"
    is_own: bool = True
    producer: Producer = field(init=False)

    def __post_init__(self) -> None:
        name = f"{self.group}-{self.connector}-{self.number}"
        history, rng = self.history, self.history.rng
        if name not in history.producers:
            epoch = rng.randrange(0, 50)
            if history.setting.new_ids and rng.random() < 0.3:
                epoch = LAST_EPOCH - rng.randrange(0, 12)
            history.producers[name] = Producer(name, history.new_producer_id(), epoch)
        self.producer = history.producers[name]
        self.init()

    @property
    def has_own_epochs(self) -> bool:
        """Whether each transaction has an epoch of its own by now."""
        history = self.history
        return self.at_ms >= START_MS + (history.ends_ms - START_MS) * history.setting.own_from

    def init(self, *, new_id: bool = False) -> None:
        """Start it (again): InitProducerId, and no transaction is open."""
        producer = self.producer
        if producer.epoch >= LAST_EPOCH or new_id:
            self._take_new_id()
        else:
            producer.epoch += 1

    def _take_new_id(self) -> None:
        producer = self.producer
        producer.former.append(producer.producer_id)
        producer.producer_id, producer.epoch = self.history.new_producer_id(), 0

    def begin(self) -> Transaction:
        """Write the records of a transaction, and its offsets."""
        history, rng = self.history, self.history.rng
        producer = self.producer
        made = Transaction(producer.transactional_id, producer.producer_id, producer.epoch, self.at_ms)
        lasts_ms = rng.uniform(0.3, 1.2) * history.setting.every_ms
        for _ in range(rng.randrange(1, 5)):
            history.write(made, history.out_place(), self.at_ms + rng.uniform(0, lasts_ms), b"k%d" % rng.randrange(9))
        self.at_ms += lasts_ms
        return made

    def commit(self) -> Transaction:
        """Take a whole transaction to its end."""
        history, rng = self.history, self.history.rng
        made = self.begin()
        for key in rng.sample(self.keys, rng.randrange(1, len(self.keys) + 1)):
            self.at_ms += 0.1
            history.write(made, history.offset_place(key), self.at_ms, key, history.next_offset(key))
        self.finish(made, commit=True)
        return made

    def abort(self) -> None:
        """Abort a transaction, as producers do after an error."""
        made = self.begin()
        if self.history.rng.random() < 0.5:
            key = self.history.rng.choice(self.keys)
            offset = b'{"position":%d}' % (self.history._positions.get(key, 0) + 5)
            self.history.write(made, self.history.offset_place(key), self.at_ms + 0.1, key, offset)
            self.at_ms += 0.2
        self.finish(made, commit=False)

    def die(self) -> None:
        """Leave a transaction open; the successor's start, or the time, aborts it with an epoch that nobody has."""
        made = self.begin()
        self.at_ms += self.history.rng.choice((10, 1000, 60_000))
        self.at_ms = self.history.end(made, self.at_ms, commit=False, epoch=made.epoch + 1) + 1
        self._note(made)
        self.producer.epoch += 1
        self.init()

    def finish(self, made: Transaction, *, commit: bool) -> None:
        """End the transaction; from transaction version 2 on that raises the epoch."""
        epoch = made.epoch + 1 if self.has_own_epochs else made.epoch
        self.at_ms = self.history.end(made, self.at_ms + 0.5, commit=commit, epoch=epoch) + 0.5
        self._note(made)
        if epoch > LAST_EPOCH:
            self._take_new_id()
        else:
            self.producer.epoch = epoch

    def _note(self, made: Transaction) -> None:
        if self.is_own:
            self.history.transactions.append(made)

    def live_until(self, until_ms: float) -> None:
        """Go on from transaction to transaction."""
        rng, setting = self.history.rng, self.history.setting
        while self.at_ms < until_ms:
            chance = rng.random()
            if chance < setting.restarts / 2:
                self.die()
            elif chance < setting.restarts:
                self.init(new_id=setting.new_ids and rng.random() < 0.3)
            elif chance < setting.restarts + setting.aborts:
                self.abort()
            else:
                self.commit()
            self.at_ms += rng.choice((0, 0, rng.uniform(0, setting.every_ms)))
            if rng.random() < 0.01:
                self.at_ms += rng.choice((30_000, 2_000_000))


def history(seed: int | str, setting: Setting | None = None) -> History:
    """Return an honest history; without a `setting` it is any."""
    rng = random.Random(f"history {seed}")  # noqa: S311 - no secret
    made = History(setting or any_setting(rng), rng)
    setting = made.setting
    lasts_ms = setting.every_ms * rng.choice((2, 5, 12))
    made.ends_ms = START_MS + lasts_ms
    keys = [_key("c", number) for number in range(setting.tasks * rng.randrange(1, 4))]
    tasks = [Task(made, "c", number, [], START_MS + rng.uniform(0, 50)) for number in range(setting.tasks)]
    eras = 3 if setting.rebalances else 1
    for era in range(eras):
        if era:
            began_ms = max(task.at_ms for task in tasks) + 5
            for task in tasks:
                task.at_ms = began_ms
                task.init()
            rng.shuffle(keys)
        for number, task in enumerate(tasks):
            task.keys = keys[number :: setting.tasks]
            task.live_until(START_MS + lasts_ms * (era + 1) / eras)
    made.ends_ms = max(task.at_ms for task in tasks)
    _others(made)
    if setting.lost_markers and not setting.live:  # as long as the next one is not there, it is missing
        _lose_markers(made)
    if not setting.live and rng.random() < 0.1:
        _leave_open(made, rng.choice(tasks))
    return made


def _key(connector: str, number: int) -> bytes:
    return json.dumps([connector, {"filename": f"f{number}"}], separators=(",", ":")).encode()


def _others(made: History) -> None:
    """Let others write to the same topics meanwhile."""
    setting, rng = made.setting, made.rng
    if setting.other_connector:
        other = Task(made, "d", 0, [_key("d", 0)], START_MS + rng.uniform(0, 100), is_own=False)
        other.live_until(made.ends_ms)
    if setting.application:
        made.producers["etl-7"] = Producer("etl-7", made.new_producer_id(), 3)
        application = Transaction("etl-7", made.producers["etl-7"].producer_id, 3, START_MS + 10)
        made.write(application, made.out_place(), rng.uniform(START_MS, made.ends_ms))
        made.end(application, application.data[0].at_ms + 3, commit=True, epoch=3)
    if setting.forgotten:
        made.unnamed |= {made.producers["g-c-0"].producer_id, *made.producers["g-c-0"].former}


def _lose_markers(made: History) -> None:
    """Drop a few markers that the next one, a commit of the same start of the producer, makes up for."""
    by_producer: dict[int, list[Transaction]] = {}
    for each in made.transactions:
        by_producer.setdefault(each.producer_id, []).append(each)
    for those in by_producer.values():
        for one, following in pairwise(those):
            goes_on = following.epoch - one.epoch in ((1,) if one.is_own_epoch else (0,))
            if not (one.is_committed and following.is_committed and goes_on) or made.rng.random() < 0.7:
                continue
            both = [
                place for place in one.markers if place in following.markers and (one.is_own_epoch or place[0] == OUT)
            ]  # of offsets under a shared epoch, two transactions would be one: no log tells them apart
            if both:
                lost = one.markers.pop(made.rng.choice(both))
                made.entries[:] = [entry for entry in made.entries if entry is not lost]


def _leave_open(made: History, task: Task) -> None:
    """Let the last transaction go on."""
    begun = task.begin()
    made.open.append(begun)
