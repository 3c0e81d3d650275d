"""Values of records: duplicates that no mode allows, by the phases of a run, and sequences that continue.

A record that was delivered while all workers were enabled was committed with its source offset: it may never come
again, whatever the mode is then. One that was delivered at least once may come again until that phase is over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec
from msgspec import Struct, field

from eosctl.app import App
from eosctl.audit.codes import DUPLICATE, GAP
from eosctl.audit.log.exact import number_in
from eosctl.audit.log.field_paths import parse_field_path
from eosctl.core.batches import Place
from eosctl.core.records import Record
from eosctl.rehearse.rows import FoundPart

A_RUN = 3
_MOST_SEQUENCES = 100
_OFFSETS_EACH = 3  # a transaction of one record has a marker, too
_OF_VALUES = {str(DUPLICATE), str(GAP)}


class Phase(Struct, frozen=True):
    """A time in which all workers were enabled, or not all; it began at the ends of the logs at that time."""

    is_enabled: bool
    since_ms: int = 0
    begin: Mapping[Place, int] = {}


class Duplicates(Struct, frozen=True):
    """The number of repeated records, by partition and by the phase of their first delivery."""

    of_enabled: Counter[str] = field(default_factory=Counter)
    of_others: Counter[str] = field(default_factory=Counter)


def duplicates(phases: Sequence[Phase], found: Sequence[Iterable[FoundPart]]) -> Duplicates:
    """Count duplicates; `found` are an audit's findings from the begin of each phase to the end of the log."""
    counts = [*map(_came_again, found), Counter[str]()]
    result = Duplicates()
    for phase, (here, later) in zip(phases, pairwise(counts), strict=True):
        (result.of_enabled if phase.is_enabled else result.of_others).update(here - later)
    return result


def _came_again(found: Iterable[FoundPart]) -> Counter[str]:
    counts = Counter[str]()
    for each in found:
        if each.code == DUPLICATE:
            counts[each.subject] += _count(each)
    return counts


def _count(found: FoundPart) -> int:
    return int(found.evidence.get("count", 1)) if isinstance(found.evidence, Mapping) else 1


def read_sequences(app: App, topics: Iterable[str], field_name: str) -> dict[str, int]:
    """Count the committed records of each sequence of `--sequence`; return none if there are many.

    Many sequences are not continuous shards, but short-lived ones. Raises what reading raises.
    """
    path, counts = parse_field_path(field_name), Counter[str]()

    def look(records: Sequence[Record]) -> Sequence[Record]:
        for record in records:
            numbered = number_in(path.value_in(record))
            if numbered is not None:
                counts[f"sequence {numbered[0]}* of topic {record.topic}"] += 1
        return ()

    with app.topics() as store:
        for topic in topics:
            store.read(topic, keep=look)
    return dict(counts) if len(counts) <= _MOST_SEQUENCES else {}


def comes_in_a_run(found: Iterable[FoundPart]) -> bool:
    """Decide whether records were repeated in sequence, as when a source is read again, rather than here and there."""
    for each in found:
        if each.code == DUPLICATE and isinstance(each.evidence, Mapping) and (count := _count(each)) >= A_RUN:
            offsets = int(each.evidence["last_offset"]) - int(each.evidence["first_offset"]) + 1
            if offsets <= count * _OFFSETS_EACH:
                return True
    return False


def missing_numbers(found: Iterable[FoundPart]) -> int:
    """Count the numbers missing in the gaps."""
    return sum(_count(each) for each in found if each.code == GAP)


def held_against(whole: Iterable[FoundPart], wrong: Counter[str]) -> Iterator[FoundPart]:
    """Return the findings about values of the whole run: each gap, and as many duplicates as are wrong."""
    left = Counter(wrong)
    for each in whole:
        if each.code == GAP:
            yield each
        elif each.code == DUPLICATE and (count := min(left.pop(each.subject, 0), _count(each))):
            yield each if count == _count(each) else _fewer(each, count)


def _fewer(found: FoundPart, count: int) -> FoundPart:
    evidence = {**found.evidence, "count": count} if isinstance(found.evidence, Mapping) else {"count": count}
    message = f"{count:,} of these are of records that may not come again: {found.message}"
    return msgspec.structs.replace(found, message=message, evidence=evidence)


def not_of_values(found: Iterable[FoundPart]) -> Iterator[FoundPart]:
    """Return the findings about transactions."""
    return (each for each in found if each.code not in _OF_VALUES)
