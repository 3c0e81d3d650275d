"""The positions of the connector's source offsets in an offsets topic, and of those that went back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from eosctl.audit.log.mirror import mirror_offset
from eosctl.audit.rules import ConnectorOffsets
from eosctl.audit.scope import Scope
from eosctl.core.batches import Span
from eosctl.core.offsets.records import OffsetKey, is_nothing
from eosctl.core.records import Record
from eosctl.errors import UnreachableError
from eosctl.offsets.history.events import ConnectorFilter, lies_before, members_of
from eosctl.offsets.history.sources import may_be_known


@dataclass(slots=True)
class OffsetPlaces:
    """The connector's offsets by partition; `key_names` are its offset keys, by the numbers that `of` has.

    `uncompared` says what of them could not be compared, each in a sentence. `_newest` has the last offset of each
    source partition that can be compared, `fallen` the keys of those one of whose offsets lies before the last one: of
    these the committed ones are compared in a second reading, as most such offsets come after an abort.
    """

    of: dict[int, ConnectorOffsets] = field(default_factory=dict)
    key_names: list[bytes] = field(default_factory=list)
    fallen: set[bytes] = field(default_factory=set)
    uncompared: tuple[str, ...] = ()
    _numbers: dict[bytes, int] = field(default_factory=dict)
    _newest: dict[tuple[bytes, int], Record] = field(default_factory=dict)

    def sieve(self, connector: str, *, is_mirror: bool) -> Callable[[Sequence[Record]], Sequence[Record]]:
        """Return what TopicReader.read hands its records to; it keeps none."""
        its = ConnectorFilter(connector)

        def look(records: Sequence[Record]) -> Sequence[Record]:
            for record in its(records):
                self._take(record, its.keys[record.key or b""], is_mirror=is_mirror)
            return ()

        return look

    def _take(self, record: Record, key: OffsetKey, *, is_mirror: bool) -> None:
        offsets = self.of.setdefault(record.partition, ConnectorOffsets())
        if is_nothing(record.value) or key.partition is None:  # an offset without a source partition nobody finds again
            offsets.deletions.append(record.offset)
            if key.raw in self._numbers:  # the source starts over
                offsets.went_back.add(record.offset)
            self._newest.pop((key.raw, record.partition), None)
            return
        number = self._numbers.setdefault(key.raw, len(self.key_names))
        if number == len(self.key_names):
            self.key_names.append(key.raw)
        offsets.values.append(record.offset)
        offsets.keys.append(number)
        if is_mirror and (copied := mirror_offset(key.partition, members_of(record.value), record.topic)) is not None:
            offsets.mirrored[record.offset] = copied
        if may_be_known(key.partition):
            before = self._newest.get((key.raw, record.partition))
            if before is not None and lies_before(key, record, before):
                self.fallen.add(key.raw)
            self._newest[key.raw, record.partition] = record

    def compare(self, connector: str) -> Callable[[Sequence[Record]], Sequence[Record]]:
        """Return the same for the committed records of the keys that have `fallen`."""
        its = ConnectorFilter(connector)
        newest: dict[tuple[bytes, int], Record] = {}

        def look(records: Sequence[Record]) -> Sequence[Record]:
            for record in its(records):
                key = its.keys[record.key or b""]
                if key.raw not in self.fallen:
                    continue
                place = (key.raw, record.partition)
                if is_nothing(record.value):
                    newest.pop(place, None)
                    continue
                if (before := newest.get(place)) is not None and lies_before(key, record, before):
                    self.of[record.partition].went_back.add(record.offset)
                newest[place] = record
            return ()

        return look

    def last_offset(self, partition: int) -> int:
        """Return the offset of the connector's last record of a partition; -1 for none."""
        values = self.of[partition].values if partition in self.of else ()
        return values[-1] if values else -1


def find_places(
    scope: Scope, topic: str, spans: Sequence[Span], *, is_mirror: bool
) -> tuple[OffsetPlaces, Mapping[int, str]]:
    """Find the connector's offsets in what can be read of these partitions, and why of the others nothing can."""
    places, wanted = OffsetPlaces(), {span.partition: span.first for span in spans}
    if not wanted:
        return places, {}
    look = places.sieve(scope.connector, is_mirror=is_mirror)
    try:
        with scope.app.with_whole_timeout().topics() as store:
            found = store.read(topic, isolation="read_uncommitted", partly=True, since=wanted, keep=look, renews=True)
        if places.fallen:
            places.uncompared = _compare(scope, topic, wanted, places)
    except UnreachableError as exc:
        return places, dict.fromkeys(wanted, exc.message)
    return places, {number: str(why) for number, why in found.missing.items() if number in wanted}


def _compare(scope: Scope, topic: str, wanted: Mapping[int, int], places: OffsetPlaces) -> tuple[str, ...]:
    """Compare the committed offsets of the keys that have fallen; what an open transaction hides can't be compared."""
    look = places.compare(scope.connector)
    with scope.app.with_whole_timeout().topics() as store:
        found = store.read(topic, partly=True, since=dict(wanted), keep=look, renews=True)
    hidden: Collection[int] = {
        each.partition for each in found.bounds if each.lso <= places.last_offset(each.partition)
    } | (found.missing.keys() & wanted.keys())
    return tuple(f"offsets of {topic}-{number} that could not be read were not compared" for number in sorted(hidden))
