"""The changes that `offsets set` makes to offsets: their order, warnings, and the refusal of another type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from eosctl.core.allowances import Waiver
from eosctl.core.offsets.records import json_text, shown_json
from eosctl.core.offsets.views import PlannedWrite, Store, live
from eosctl.core.wording import counted, encodable
from eosctl.errors import RefusedError
from eosctl.offsets import codes
from eosctl.offsets.history.events import (
    Change,
    MemberChange,
    OffsetComparison,
    compare_offsets,
    members_of,
    offset_changes,
    source_of,
    type_name,
)
from eosctl.offsets.history.gtids import Order
from eosctl.offsets.history.sources import KnownSource, lsn_number, lsn_texts
from eosctl.offsets.write_rows import ChangedMember, LsnTexts
from eosctl.report import Problem


class KeyChange(Struct, frozen=True):
    """The difference between a key's new offset and its present one, if any; `source` is None if it is unknown."""

    partition: Mapping[str, object] | None
    before: Mapping[str, object] | None
    after: Mapping[str, object]
    source: KnownSource | None

    def members(self) -> list[MemberChange]:
        """Return the members that differ."""
        return [] if self.before is None else offset_changes(self.before, self.after, self.source)

    def comparison(self) -> OffsetComparison:
        """Compare the new offset with the present one; without one, the source may be read from the beginning."""
        if self.before is None:
            return OffsetComparison(Order.BEHIND)
        return compare_offsets(self.before, self.after, self.source)

    def goes_forward(self) -> bool:
        """Decide whether the new position certainly skips something, if only in part."""
        return any(part.order in (Order.AHEAD, Order.MIXED) for part in self.comparison().parts)

    def may_go_back(self) -> bool:
        """Decide whether the source may be read again from an earlier position; some positions cannot be compared."""
        return self.comparison().order not in (Order.AHEAD, Order.EQUAL)

    def rows(self) -> Iterable[ChangedMember]:
        """Yield the rows of `data.changes`."""
        lsns = lsn_texts(self.before) or {}, lsn_texts(self.after) or {}
        for change in self.members():
            texts = [by_member.get(change.member) for by_member in lsns]
            yield ChangedMember(
                source_partition=shown_json(self.partition),
                member=encodable(change.member),
                change=change.change,
                before=shown_json(change.before),
                after=shown_json(change.after),
                lsn=LsnTexts(before=texts[0], after=texts[1]) if any(texts) else None,
            )


def key_changes(writes: Iterable[PlannedWrite], stores: Iterable[Store]) -> list[KeyChange]:
    """Return each different pair of old and new offset once: the stores of a connector mostly hold the same.

    If a store has no live offset of the key, the offset of another store is the old one.
    """
    stores = list(stores)
    found: dict[str, KeyChange] = {}
    for write in writes:
        if not write.sends():
            continue
        others = (live(store.records.get(write.key.raw)) for store in stores)
        old = live(write.before) or next(filter(None, others), None)
        before, after = members_of(old.value if old else None), members_of(write.after)
        if after is not None:
            partition = write.key.partition
            change = KeyChange(partition, before, after, source_of(partition, before, after))
            found.setdefault(f"{write.key.identity} {json_text(before)}", change)
    return list(found.values())


def shape_refusal(changes: Iterable[KeyChange]) -> RefusedError | None:
    """Return the refusal of members that change their type, which makes a task fail; None without any."""
    changed = [(key, change) for key in changes for change in key.members() if change.change is Change.TYPE]
    if not changed:
        return None
    key, first = changed[0]
    more = f", and {counted(len(changed) - 1, 'more member')}" if len(changed) > 1 else ""
    number = lsn_number(first.after) if isinstance(first.before, int) else None
    better = f"{first.after} is the number {number}. " if number is not None else ""
    return RefusedError(
        f"{first.member} of {json_text(key.partition)} is {type_name(first.before)} now, and would be "
        f"{type_name(first.after)}{more}: a task that expects the other type fails; nothing was written",
        hint=f"{better}Write the type that is there; {Waiver.FORCE_SHAPE} writes what was given.",
    )


def change_problems(changes: Sequence[KeyChange], *, read_before: bool = False) -> Iterable[Problem]:
    """Warn of what is skipped, and of what a known source can no longer deliver.

    `read_before`: the offsets were committed once, so that what lies before them is in Kafka already.
    """
    forward = [key for key in changes if key.goes_forward()]
    if forward:
        where = ", ".join(json_text(key.partition) for key in forward[:3]) + (", ..." if len(forward) > 3 else "")
        message = (
            f"{counted(len(forward), 'offset goes', 'offsets go')} forward ({where}): what lies between is not read"
        )
        hint = (
            "It was read before these offsets were committed; what the source has changed there since is not read."
            if read_before
            else "Records of the source that are skipped here are nowhere in Kafka."
        )
        yield Problem(codes.GOES_FORWARD, message, hint=hint)
    yield from _unordered_problems(key for key in changes if not key.goes_forward())
    back = [key.source for key in changes if key.source is not None and key.may_go_back()]
    for source in {each.name: each for each in back}.values():
        message = f"this looks like an offset of {source.name}: {source.keeps}"
        yield Problem(codes.SOURCE_KEEPS, message, hint=source.instead)


def _unordered_problems(changes: Iterable[KeyChange]) -> Iterable[Problem]:
    """Warn of offsets that can't be compared with the present ones, by the members that differ."""
    unordered = [(key, names) for key in changes if (names := key.comparison().incomparable())]
    if unordered:
        key, names = unordered[0]
        more = f", and {counted(len(unordered) - 1, 'more offset')}" if len(unordered) > 1 else ""
        of_what = "an unknown connector" if key.source is None else key.source.name
        yield Problem(
            codes.ORDER_UNKNOWN,
            f"{json_text(key.partition)} can't be compared with the offset before, by {encodable(', '.join(names))}"
            f"{more}: what lies between may be skipped",
            hint=f"How {of_what} counts there is not known. Compare with what the source has: records that are skipped "
            "are nowhere in Kafka.",
        )
