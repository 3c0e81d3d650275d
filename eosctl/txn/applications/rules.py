"""Groups transactional ids by application: by their readings, and ids without one by common prefixes. Pure.

A reading is a way in which a known product may have constructed the id. An id with several readings makes its
application `ambiguous`, with all of them: nothing is guessed. There is one pass over the ids; each takes a list item,
and a number or two for a Flink sink.

Sources: Connect `Worker.taskTransactionalId` and `DistributedConfig.transactionalProducerId` (Kafka 3.3 to 4.4); Flink
`TransactionalIdFactory` (connector 1.14 to 4.0) and `TransactionalIdsGenerator` (the older FlinkKafkaProducer); Streams
`StreamsProducer` and `ActiveTaskCreator` (2.6 to 4.4); Spring `DefaultTransactionIdSuffixStrategy` and
`zombieFenceTxIdSuffix` (spring-kafka 1.3 to 4.0).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from msgspec import Struct

from eosctl.core.ids import TransactionalId, is_own_id, leader_transactional_id, task_of
from eosctl.core.java.properties import whole_number
from eosctl.core.transactions import OPEN_STATES, TransactionListing

Product = Literal["connect", "flink-sink", "flink-producer", "kafka-streams", "spring", "eosctl"]
Guarantee = Literal["exactly_once", "exactly_once_v2"]

_LEADS = leader_transactional_id("")
_NUMBER = r"(?:0|[1-9][0-9]{0,18})"  # as Java prints an int or a long
# the application.id, the UUID of the process, the thread (EOS v2)
_STREAMS_V2 = re.compile(rf"(.+)-[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}-({_NUMBER})", re.DOTALL)
# the application.id, subtopology_partition (EOS v1, until Streams 4.0)
_STREAMS_V1 = re.compile(rf"(.+)-({_NUMBER})_({_NUMBER})", re.DOTALL)
# task name, operator id (a hash), number: FlinkKafkaProducer without a prefix of its own
_FLINK_PRODUCER = re.compile(rf"(.+-[0-9a-f]{{32}})-({_NUMBER})", re.DOTALL)
# prefix, subtask, then a checkpoint (INCREMENTING) or a place in the pool (POOLING): KafkaSink
_FLINK_SINK = re.compile(rf"(.+)-({_NUMBER})-({_NUMBER})", re.DOTALL)
# a prefix and an int, in a word that has no other digit: random hex digits are no number
_ENDS_IN_NUMBER = re.compile(rf"((?:.*[-_.:/])?[^-_.:/0-9]*)({_NUMBER})", re.DOTALL)
_UUID = re.compile(r".*[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.DOTALL)
_MOST = 2**31 - 1


class IdReading(NamedTuple):
    """One reading of an id; `name` is common to all ids of the application, and identifies it.

    `first` and `second` are the numbers in it: subtask and checkpoint of a Flink sink, subtopology and partition of
    Streams. `sure`: the cluster shows that such an application exists; else only the form of the id does.
    """

    product: Product
    name: str
    group_id: str | None = None
    connector: str | None = None
    guarantee: Guarantee | None = None
    first: int | None = None
    second: int | None = None
    sure: bool = False


class ClusterFacts(Struct, frozen=True):
    """The groups and topics of the cluster, which prove readings.

    `connect_groups` maps Connect groups to the connectors that their members hold. `other_groups` are the other groups
    (for Streams, the application.id). `topics` are the topics with their numbers of partitions.
    """

    connect_groups: Mapping[str, frozenset[str]] = {}
    other_groups: Collection[str] = frozenset()
    topics: Mapping[str, int] = {}


def readings_of(transactional_id: TransactionalId, known: ClusterFacts) -> tuple[IdReading, ...]:
    """Return every reading of the id, in a fixed order; none if no product constructs such ids.

    If the cluster proves any readings, only those remain. A reading as a mere prefix and number (of Spring, or of a
    FlinkKafkaProducer with a custom prefix) counts only if there is no other.
    """
    found = [*_of_connect(transactional_id, known), *_by_shape(transactional_id, known)]
    if is_own_id(transactional_id):
        found.append(IdReading("eosctl", "eosctl", sure=True))
    if not found:
        found = list(_numbered(transactional_id))
    proven = tuple(reading for reading in found if reading.sure)
    return proven or tuple(found)


def _of_connect(transactional_id: TransactionalId, known: ClusterFacts) -> Iterator[IdReading]:
    """Yield readings as the id of a leader, or of a task of each group whose name is a prefix.

    The leader of a group that does not exist (any more) is yielded only if no group can have such a task.
    """
    leads = transactional_id.removeprefix(_LEADS) if transactional_id.startswith(_LEADS) else ""
    if leads in known.connect_groups:
        yield IdReading("connect", transactional_id, leads, sure=True)
        leads = ""
    for group_id, connectors in known.connect_groups.items():
        work = task_of(transactional_id, group_id) if transactional_id.startswith(group_id) else None
        if work is not None:
            name, leads = f"{group_id}-{work[0]}", ""
            yield IdReading("connect", name, group_id, work[0], first=work[1], sure=work[0] in connectors)
    if leads:
        yield IdReading("connect", transactional_id, leads)


def _by_shape(transactional_id: TransactionalId, known: ClusterFacts) -> Iterator[IdReading]:
    if listener := _spring_listener(transactional_id, known):
        yield listener
    if not transactional_id[-1:].isdigit():
        return  # quicker than by the shapes
    if match := _STREAMS_V2.fullmatch(transactional_id):
        sure = match[1] in known.other_groups
        yield IdReading("kafka-streams", match[1], None, None, "exactly_once_v2", int(match[2]), sure=sure)
    elif match := _STREAMS_V1.fullmatch(transactional_id):
        sure, numbers = match[1] in known.other_groups, (int(match[2]), int(match[3]))
        yield IdReading("kafka-streams", match[1], None, None, "exactly_once", *numbers, sure)
    elif match := _FLINK_PRODUCER.fullmatch(transactional_id):
        yield IdReading("flink-producer", match[1], first=int(match[2]))
    elif match := _FLINK_SINK.fullmatch(transactional_id):
        yield IdReading("flink-sink", match[1], first=int(match[2]), second=int(match[3]))


def _spring_listener(transactional_id: TransactionalId, known: ClusterFacts) -> IdReading | None:
    """Read `prefix` + `group.topic.partition` with an existing group and topic; the longest topic wins."""
    head, dot, partition = transactional_id.rpartition(".")
    number = whole_number(partition)
    if not dot or number is None or not known.topics:
        return None
    at = head.find(".")
    while at >= 0:
        topic, left = head[at + 1 :], head[:at]
        if number < known.topics.get(topic, 0):
            groups = [group for group in known.other_groups if left.endswith(group)]
            if groups:
                group = max(groups, key=len)
                return IdReading("spring", left, group, first=number, sure=True)
        at = head.find(".", at + 1)
    return None


def _numbered(transactional_id: TransactionalId) -> Iterator[IdReading]:
    """Yield readings as a prefix and a number: Spring's, and a FlinkKafkaProducer's if separated by a dash."""
    match = _ENDS_IN_NUMBER.fullmatch(transactional_id)
    if match is None or not match[1] or int(match[2]) > _MOST or _UUID.fullmatch(transactional_id):
        return
    if match[1].endswith("-"):
        yield IdReading("flink-producer", match[1][:-1], first=int(match[2]))
    yield IdReading("spring", match[1], first=int(match[2]))


ApplicationKind = Literal[
    "connect", "flink-sink", "flink-producer", "kafka-streams", "spring", "eosctl", "ambiguous", "unknown"
]
Naming = Literal["incrementing", "pooling"]
Key = tuple[tuple[Product, str], ...]

_SEPARATED = re.compile(r"[^-_.:/]*[-_.:/]+")
_SINGLES = 20
"""The largest number of ids without a common prefix that are rows of their own; more are one row without a name."""


@dataclass(slots=True)
class _Numbers:
    """The second numbers of one subtask's ids, summarized without a list of them."""

    count: int = 0
    lowest: int = 2**63
    highest: int = -1

    def add(self, number: int) -> None:
        self.count += 1
        self.lowest, self.highest = min(self.lowest, number), max(self.highest, number)

    def gapless_from_0(self) -> bool:
        return self.lowest == 0 and self.highest == self.count - 1


@dataclass(slots=True)
class _Tally:
    """The ids of one application so far."""

    readings: tuple[IdReading, ...]
    ids: list[TransactionListing] = field(default_factory=list)
    subtasks: dict[int, _Numbers] = field(default_factory=dict)

    def add(self, listing: TransactionListing, readings: tuple[IdReading, ...]) -> None:
        self.ids.append(listing)
        (reading, *_) = readings
        if reading.first is not None:
            numbers = self.subtasks.setdefault(reading.first, _Numbers())
            numbers.add(reading.second if reading.second is not None else reading.first)


class ApplicationIds(Struct, frozen=True):
    """Transactional ids that belong together, and the product that uses them, as far as known.

    `could_be` has more than one reading only if the kind is `ambiguous`. `firsts` is the number of different first
    numbers (tasks, subtasks, threads, subtopologies) in the ids, `highest` the highest last number among them.
    """

    kind: ApplicationKind
    name: str
    ids: Sequence[TransactionListing]
    could_be: tuple[IdReading, ...] = ()
    sure: bool = False
    naming: Naming | None = None
    firsts: int | None = None
    highest: int | None = None

    @property
    def reading(self) -> IdReading | None:
        """The reading of the ids, if there is only one."""
        return self.could_be[0] if len(self.could_be) == 1 else None

    @property
    def guarantee(self) -> Guarantee | None:
        """`processing.guarantee` of Streams."""
        return self.reading.guarantee if self.reading is not None else None

    def key(self) -> str:
        """Return the key that identifies the application at another look."""
        return f"{self.kind}:{self.guarantee or ''}:{self.name}"

    def open(self) -> list[TransactionListing]:
        """Return the ids with an open transaction."""
        return [each for each in self.ids if each.state in OPEN_STATES]


def applications_of(listings: Iterable[TransactionListing], known: ClusterFacts) -> list[ApplicationIds]:
    """Group the ids by application, by kind and name; group ids without any reading by their common prefix."""
    tallies: dict[Key, _Tally] = {}
    rest: list[TransactionListing] = []
    for listing in listings:
        readings = readings_of(listing.transactional_id, known)
        if not readings:
            rest.append(listing)
            continue
        key = tuple((each.product, f"{each.guarantee or ''}{each.name}") for each in readings)
        tally = tallies.get(key)
        if tally is None:
            tally = tallies[key] = _Tally(tuple(each._replace(first=None, second=None) for each in readings))
        tally.add(listing, readings)
    found = [*map(_application, tallies.values()), *_by_prefix(rest)]
    return sorted(found, key=lambda each: (each.name, each.kind, each.guarantee or "", each.could_be))


def _application(tally: _Tally) -> ApplicationIds:
    readings = tally.readings
    naming: Naming | None = None
    if len(readings) == 1 and readings[0].product == "flink-sink":
        readings, naming = _sink_or_spring(tally)
    kind: ApplicationKind = readings[0].product if len(readings) == 1 else "ambiguous"
    numbers = tally.subtasks.values()
    highest = max((each.highest for each in numbers), default=None)
    firsts = len(tally.subtasks) or None
    sure = len(readings) == 1 and readings[0].sure
    return ApplicationIds(kind, readings[0].name, tally.ids, readings, sure, naming, firsts, highest)


def _sink_or_spring(tally: _Tally) -> tuple[tuple[IdReading, ...], Naming | None]:
    """Distinguish a Flink sink's numbers, from 1 (INCREMENTING: checkpoints) or 0 (POOLING: slots), from Spring's.

    Spring, too, constructs numbers that begin at 0 without a gap, if each instance's prefix ends in its number. If some
    subtask began later, or has a gap, it can only be Flink: pools grow without gaps, but expired ids of a former pool
    leave some.
    """
    (sink,) = tally.readings
    if all(each.gapless_from_0() for each in tally.subtasks.values()):
        return (sink, IdReading("spring", f"{sink.name}-")), None
    return (sink,), "pooling" if any(each.lowest == 0 for each in tally.subtasks.values()) else "incrementing"


def _by_prefix(listings: list[TransactionListing]) -> list[ApplicationIds]:
    """Group ids without a reading by their common prefix up to a separator."""
    listings.sort(key=lambda each: each.transactional_id)
    runs = _runs(listings, 0, len(listings), at=0)
    singles = [lower for lower, upper in runs if upper - lower == 1]
    found = [_unknown(listings[lower:upper]) for lower, upper in runs if upper - lower > 1]
    if len(singles) <= _SINGLES:
        return [*found, *(_unknown([listings[lower]]) for lower in singles)]
    return [*found, _unknown([listings[lower] for lower in singles])]


def _unknown(listings: Sequence[TransactionListing]) -> ApplicationIds:
    first, last = listings[0].transactional_id, listings[-1].transactional_id
    return ApplicationIds("unknown", common_prefix(first, last), listings)


def common_prefix(first: str, last: str) -> str:
    """Return the common prefix of two ids; for sorted ids, that of the first and the last is common to all."""
    for at, (one, other) in enumerate(zip(first, last, strict=False)):
        if one != other:
            return first[:at]
    return min(first, last, key=len)


def _runs(listings: Sequence[TransactionListing], lower: int, upper: int, *, at: int) -> list[tuple[int, int]]:
    """Return slices of sorted ids that share a prefix; extend it word by word until over half of the ids differ."""
    work, found = [(lower, upper, at)], []
    while work:
        lower, upper, at = work.pop()
        if upper - lower <= 1:
            found += [(lower, upper)] if upper > lower else []
            continue
        words = _words(listings, lower, upper, at)
        if at > 0 and 2 * len(words) > upper - lower:
            found.append((lower, upper))
        elif len(words) == 1 and words[0][2] == at:
            found.append((lower, upper))  # nothing is left to read
        else:
            work += words
    return sorted(found)


def _words(listings: Sequence[TransactionListing], lower: int, upper: int, at: int) -> list[tuple[int, int, int]]:
    """Return the slices of ids that agree on the next word, too, each with the end of that word."""
    found: list[tuple[int, int, int]] = []
    begin, word = lower, _next_word(listings[lower].transactional_id, at)
    for number in range(lower + 1, upper):
        now = _next_word(listings[number].transactional_id, at)
        if now != word:
            found.append((begin, number, at + len(word)))
            begin, word = number, now
    return [*found, (begin, upper, at + len(word))]


def _next_word(transactional_id: TransactionalId, at: int) -> str:
    """Return the text from `at` to the next separator, or to the end: an id without one there is unique."""
    match = _SEPARATED.match(transactional_id, at)
    return match[0] if match is not None else transactional_id[at:]


def sharing(applications: Sequence[ApplicationIds]) -> dict[str, list[str]]:
    """Map each application's key to others that share its prefix, if one may disturb the other.

    Flink's POOLING aborts every open transaction on its topics whose id has its prefix, even of another job
    (`TransactionAbortStrategyImpl.LISTING`, connector 4.0). Two products under one name are two applications; the two
    guarantees of Streams under one name are one application that is being upgraded.
    """
    found: dict[str, list[str]] = {}
    around: list[ApplicationIds] = []
    for each in sorted(applications, key=lambda one: one.name):
        while around and not each.name.startswith(around[-1].name):
            around.pop()
        for outer in around:
            if _may_abort_by_prefix(outer) or (outer.name == each.name and outer.kind != each.kind):
                found.setdefault(outer.key(), []).append(each.name)
                found.setdefault(each.key(), []).append(outer.name)
        if each.name:
            around.append(each)
    return found


def _may_abort_by_prefix(application: ApplicationIds) -> bool:
    """Decide whether the application may abort by prefix; INCREMENTING jobs abort ids of their own subtasks only."""
    could_be = {each.product for each in application.could_be}
    return "flink-sink" in could_be and application.naming != "incrementing"


def sample(ids: Sequence[TransactionListing], most: int) -> Sequence[TransactionListing]:
    """Return at most `most` of the ids, evenly spread, including the first."""
    if len(ids) <= most:
        return ids
    return [ids[number * len(ids) // most] for number in range(most)]
