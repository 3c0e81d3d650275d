"""What no exactly-once connector can have written, each put into a history at a random place. Pure.

A way of cheating returns False where the history has no place for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import pairwise

from eosctl.core.records import Place
from tests.audit.histories import OFFSETS, OUT, UNREAD, Entry, History, Producer, Task, Transaction

Cheat = Callable[[History], bool]
_YEAR_1970_MS, _YEAR_2100_MS = 1_000, 4_102_444_800_000


def _any_committed(made: History, *, want: Callable[[Transaction], bool] = lambda _each: True) -> Transaction | None:
    there = [
        each
        for each in made.transactions
        if each.is_committed and each.places(OUT) and each.places(OFFSETS) and want(each)
    ]
    return made.rng.choice(there) if there else None


def _note(made: History, first_ms: float, last_ms: float) -> bool:
    made.cheated_ms = (first_ms, last_ms)
    return True


def _drop(made: History, gone: Collection[int]) -> None:
    """Drop entries, by identity."""
    made.entries[:] = [each for each in made.entries if id(each) not in gone]


def _plain(made: History, stamp_ms: int | None = None) -> bool:
    """Write a record without a transaction, amid the connector's."""
    chosen = _any_committed(made)
    if chosen is None:
        return False
    at_ms = chosen.begun_ms + 0.01
    plain = Entry(at_ms, made.rng.choice(chosen.places(OUT)), made.new_producer_id(), 0, is_transactional=False)
    plain.stamp_ms = int(at_ms) if stamp_ms is None else stamp_ms
    made.entries.append(plain)
    return _note(made, at_ms, chosen.ended_ms)


def plain_record(made: History) -> bool:
    """A record without a transaction."""
    return _plain(made)


def plain_record_of_1970(made: History) -> bool:
    """A record without a transaction, with a time of long ago."""
    return _plain(made, _YEAR_1970_MS)


def plain_record_of_2100(made: History) -> bool:
    """A record without a transaction, with a time of the future."""
    return _plain(made, _YEAR_2100_MS)


def _without_offsets(made: History, key: bytes | None, value: bytes | None = None) -> bool:
    chosen = _any_committed(made)
    if chosen is None:
        return False
    _remove_part(made, chosen, chosen.places(OFFSETS))
    if key is not None:
        place = made.offset_place(key)
        at_ms = min(each.at_ms for each in chosen.markers.values()) - 0.1
        made.write(chosen, place, at_ms, key, value)
        first = next(iter(chosen.markers.values()))
        chosen.markers[place] = replace(first, place=place, at_ms=first.at_ms + 0.05)
        made.entries.append(chosen.markers[place])
    return _note(made, chosen.begun_ms, chosen.ended_ms)


def _remove_part(made: History, chosen: Transaction, places: Collection[tuple[str, int]]) -> None:
    gone = [each for each in chosen.data if each.place in places]
    gone += [chosen.markers.pop(place) for place in list(chosen.markers) if place in places]
    chosen.data[:] = [each for each in chosen.data if each.place not in places]
    _drop(made, {id(each) for each in gone})


def no_offsets(made: History) -> bool:
    """Records, and no offset."""
    return _without_offsets(made, None)


def null_offsets(made: History) -> bool:
    """Records without a source partition: Connect writes a tombstone for them."""
    return _without_offsets(made, b'["c",null]')


def offsets_of_another(made: History) -> bool:
    """Records with the offsets of another connector only."""
    return _without_offsets(made, b'["cc",{"filename":"f0"}]', b'{"position":1}')


def deleted_offset(made: History) -> bool:
    """Records with a null offset of the source partition."""
    chosen = _any_committed(made)
    if chosen is None:
        return False
    for each in chosen.data:
        if each.place[0] == OFFSETS:
            each.value = None
    made.may_compact = False
    return _note(made, chosen.begun_ms, chosen.ended_ms)


def _abort_part(made: History, topic: str, *, raises: bool) -> bool:
    """An administrator aborts one part; the coordinator's marker follows, unless the epoch of the abort is above it."""
    chosen = _any_committed(made)
    if chosen is None:
        return False
    place = made.rng.choice(chosen.places(topic))
    marker = chosen.markers[place]
    if raises and not _leave_for_good(made, chosen, place):
        return False
    last_ms = max(each.at_ms for each in chosen.data if each.place == place)
    aborted = replace(marker, commit=False, epoch=chosen.epoch + raises, at_ms=(last_ms + marker.at_ms) / 2)
    comes_late = made.rng.random() < 0.5
    if comes_late:  # the coordinator's marker was lost
        aborted.at_ms = marker.at_ms
    if raises or comes_late:
        _drop(made, {id(marker)})
    made.entries.append(aborted)
    made.may_compact = topic == OUT
    return _note(made, chosen.begun_ms, chosen.ended_ms)


def aborted_part(made: History) -> bool:
    """A part of the output was aborted by an administrator, with the producer's epoch."""
    return _abort_part(made, OUT, raises=False)


def aborted_part_raised_epoch(made: History) -> bool:
    """The same with the epoch of the end."""
    return _abort_part(made, OUT, raises=True)


def aborted_offsets_part(made: History) -> bool:
    """The offsets were aborted."""
    return _abort_part(made, OFFSETS, raises=False)


def aborted_offsets_part_raised_epoch(made: History) -> bool:
    """The same with the epoch of the end."""
    return _abort_part(made, OFFSETS, raises=True)


def records_aborted_offsets_committed(made: History) -> bool:
    """All records were aborted, and the offsets committed."""
    chosen = _any_committed(made)
    if chosen is None:
        return False
    for place in chosen.places(OUT):
        chosen.markers[place].commit = False
    return _note(made, chosen.begun_ms, chosen.ended_ms)


def _never_marked(made: History, topic: str) -> bool:
    """A part never gets a marker, and no later one in its partition ends it: its producer goes on elsewhere."""
    chosen = _any_committed(made)
    if chosen is None:
        return False
    place = made.rng.choice(chosen.places(topic))
    later = [each.ended_ms for each in made.transactions if each.begun_ms >= chosen.ended_ms]
    if not later or not _leave_for_good(made, chosen, place, every_epoch=True):
        return False
    _drop(made, {id(chosen.markers.pop(place))})
    made.may_compact = False
    return _note(made, chosen.begun_ms, max(later))


def _leave_for_good(made: History, chosen: Transaction, place: Place, *, every_epoch: bool = False) -> bool:
    """Drop what the producer wrote to a partition later, with its epoch; False if a transaction had no more there."""
    later = [
        each
        for each in made.transactions
        if each.begun_ms >= chosen.ended_ms and each.transactional_id == chosen.transactional_id
        and place in each.markers and (every_epoch or each.epoch == chosen.epoch)
    ]  # fmt: skip
    is_open_there = any(entry.place == place for each in made.open for entry in each.data)
    if is_open_there or any(len(each.places(place[0])) < 2 for each in later):
        return False
    for each in later:
        _remove_part(made, each, [place])
    return True


def marker_never_written(made: History) -> bool:
    """A part of the output stays open for good."""
    return _never_marked(made, OUT)


def offsets_marker_never_written(made: History) -> bool:
    """The offsets stay open for good."""
    return _never_marked(made, OFFSETS)


def marker_lost_before_an_abort(made: History) -> bool:
    """A marker was never written, and the next one in the partition is an abort: it takes the records along."""
    by_place = list(pairwise(made.transactions))
    made.rng.shuffle(by_place)
    for one, following in by_place:
        if not one.is_committed or following.is_committed or one.producer_id != following.producer_id:
            continue
        if not one.is_own_epoch and following.is_own_epoch:
            continue  # a fence, of whose transaction nobody can say when it began
        both = [place for place in one.places(OUT) if place in following.markers]
        if both and one.places(OFFSETS):
            _drop(made, {id(one.markers.pop(both[0]))})
            return _note(made, one.begun_ms, following.ended_ms)
    return False


def truncated_records(made: History) -> bool:
    """An unclean leader election took the records, and at times their marker; the offsets are there."""
    chosen = _any_committed(made)
    if chosen is None:
        return False
    gone = [each for each in chosen.data if each.place[0] == OUT]
    if made.rng.random() < 0.5:
        gone += [chosen.markers.pop(place) for place in chosen.places(OUT)]
    _drop(made, {id(each) for each in gone})
    made.may_compact = False
    return _note(made, chosen.begun_ms, chosen.ended_ms)


def truncated_offsets(made: History) -> bool:
    """An unclean leader election took the end of an offsets partition; the records are there."""
    chosen = _any_committed(made)
    if chosen is None or len(chosen.places(OFFSETS)) > 1:
        return False
    place = chosen.places(OFFSETS)[0]
    first_ms = min(each.at_ms for each in chosen.data if each.place == place)
    last_ms = chosen.markers[place].at_ms
    _drop(made, {id(e) for e in made.entries if e.place == place and first_ms <= e.at_ms <= last_ms})
    return _note(made, chosen.begun_ms, chosen.ended_ms)


def unlisted_topic(made: History) -> bool:
    """All records of a transaction are in a topic that is not read."""
    chosen = _any_committed(made)
    if chosen is None:
        return False
    marker = chosen.markers[chosen.places(OUT)[0]]
    _remove_part(made, chosen, chosen.places(OUT))
    at_ms = marker.at_ms - 0.3
    made.write(chosen, (UNREAD, 0), at_ms)
    chosen.markers[UNREAD, 0] = replace(marker, place=(UNREAD, 0))
    made.entries.append(chosen.markers[UNREAD, 0])
    made.may_compact = False
    return _note(made, chosen.begun_ms, chosen.ended_ms)


def _second_reader(made: History, task: Task) -> bool:
    """Let another task commit the same source partitions in turn with the one that has them."""
    theirs = [each for each in made.transactions if each.is_committed and each.places(OFFSETS)]
    if len(theirs) < 3:
        return False
    first = made.rng.randrange(len(theirs) - 2)
    chosen = theirs[first]
    key = next(each.key for each in chosen.data if each.place[0] == OFFSETS)
    again = [
        each
        for each in theirs
        if each.begun_ms > chosen.ended_ms and any(entry.key == key for entry in each.data)
        and (each.producer_id, each.transactional_id) == (chosen.producer_id, chosen.transactional_id)
    ]  # fmt: skip
    if not again or _starts_between(made, chosen, again[0]):
        return False
    task.keys[:] = [key]
    task.at_ms = chosen.ended_ms + 0.2
    made.may_compact = False
    task.commit()
    if task.at_ms > again[0].begun_ms:
        return False
    return _note(made, chosen.begun_ms, again[0].ended_ms)


def _starts_between(made: History, one: Transaction, other: Transaction) -> bool:
    """Whether the producer was started again between two transactions."""
    mine = [each for each in made.transactions if each.transactional_id == one.transactional_id]
    span = mine[mine.index(one) : mine.index(other) + 1]
    return any(b.producer_id != a.producer_id or b.epoch - a.epoch != int(a.is_own_epoch) for a, b in pairwise(span))


def zombie_of_another_number(made: History) -> bool:
    """A task that should be gone commits a source partition in turn with the one that has it now."""
    return _second_reader(made, Task(made, "c", 9, [], 0, is_own=False))


def second_group(made: History) -> bool:
    """The same connector runs in another group."""
    return _second_reader(made, Task(made, "c", 0, [], 0, group="h", is_own=False))


def source_read_twice(made: History) -> bool:
    """A source starts over: the offset that is committed lies before the former one."""
    seen: dict[bytes, Entry] = {}
    places: list[tuple[Entry, Transaction]] = []
    for each in sorted(made.transactions, key=lambda one: one.ended_ms):
        if each.is_committed:
            for entry in each.data:
                if entry.place[0] == OFFSETS:
                    if entry.key in seen:
                        places.append((entry, each))
                    seen[entry.key] = entry
    if not places:
        return False
    entry, chosen = made.rng.choice(places)
    entry.value = b'{"position":0}'
    made.may_compact = False
    return _note(made, chosen.begun_ms, chosen.ended_ms)


def offsets_topic_made_anew(made: History) -> bool:
    """The offsets topic was deleted: what was committed before has no offsets any more."""
    chosen = _any_committed(made)
    if chosen is None:
        return False
    until_ms = chosen.ended_ms
    _drop(made, {id(each) for each in made.entries if each.place[0] == OFFSETS and each.at_ms <= until_ms})
    return _note(made, min(each.begun_ms for each in made.transactions), until_ms)


def offsets_elsewhere(made: History) -> bool:
    """From a time on offsets are committed to a topic that is not in use."""
    chosen = _any_committed(made)
    if chosen is None:
        return False
    for each in made.entries:
        if each.place[0] == OFFSETS and each.at_ms >= chosen.begun_ms and b'"d"' not in each.key:
            each.place = ("own-offsets", each.place[1])
    made.offsets_topics = [OFFSETS, "own-offsets"]
    made.may_compact = False
    return _note(made, chosen.begun_ms, chosen.ended_ms)


def zombie_of_an_older_epoch(made: History) -> bool:
    """A producer writes with an older epoch after its successor did: brokers must refuse that."""
    chosen = _any_committed(made, want=lambda each: each.epoch > 0)
    if chosen is None:
        return False
    place = made.rng.choice(chosen.places(OUT))
    at_ms = max(each.at_ms for each in chosen.data if each.place == place) + 0.01
    made.entries.append(Entry(at_ms, place, chosen.producer_id, chosen.epoch - 1, stamp_ms=int(at_ms)))
    return _note(made, chosen.begun_ms, chosen.ended_ms)


def id_like_the_groups(made: History) -> bool:
    """A producer whose id only looks like one of the group's."""
    name = "g-eu-c-0"
    made.producers[name] = Producer(name, made.new_producer_id(), 4)
    return _strange(made, name)


def nobody_knows_the_producer(made: History) -> bool:
    """A producer whose id the coordinators have forgotten, without offsets."""
    name = "own producer of the connector"
    made.producers[name] = Producer(name, made.new_producer_id(), 4)
    made.unnamed.add(made.producers[name].producer_id)
    return _strange(made, name)


def _strange(made: History, name: str) -> bool:
    chosen = _any_committed(made)
    if chosen is None:
        return False
    strange = Transaction(name, made.producers[name].producer_id, 4, chosen.begun_ms)
    made.write(strange, made.rng.choice(chosen.places(OUT)), chosen.begun_ms)
    made.end(strange, chosen.begun_ms + 1, commit=True, epoch=5)
    return _note(made, chosen.begun_ms, max(chosen.ended_ms, strange.ended_ms))


def offsets_without_transaction(made: History) -> bool:
    """A worker that is not enabled writes offsets."""
    chosen = _any_committed(made)
    if chosen is None:
        return False
    key = next(each.key for each in chosen.data if each.place[0] == OFFSETS)
    at_ms = chosen.begun_ms + 0.01
    plain = Entry(
        at_ms, made.offset_place(key), made.new_producer_id(), 0, None, key, b'{"position":1}', int(at_ms),
        is_transactional=False,
    )  # fmt: skip
    made.entries.append(plain)
    made.may_compact = False
    return _note(made, chosen.begun_ms, chosen.ended_ms)
