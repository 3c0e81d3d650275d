"""Finds connectors that left their source partitions behind when their config was changed. Pure.

A known connector is found by two configs in the config topic: the former one names the source partitions whose offsets
are there, the present one rules them out and names others. Of any other class it is only seen that no source partition
that was committed until the change was committed again, and that all since are new. Nothing is claimed where a rule has
no answer, where the former config was compacted away, or where a source partition stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from eosctl.core.clients.hidden_secrets import shown_name
from eosctl.core.configs.history import WrittenConfig
from eosctl.core.findings import INFO, WARNING, Finding
from eosctl.core.offsets.records import OffsetKey, json_text, shown_json
from eosctl.core.offsets.views import Store, live
from eosctl.core.wording import counted, rfc3339
from eosctl.foreign import arguments, shell_words
from eosctl.offsets import codes
from eosctl.offsets.history.config_changes import (
    ConfigPartitions,
    changed_names,
    is_connects_own,
    partitions_of,
)
from eosctl.offsets.history.config_reader import Belongs
from eosctl.offsets.history.rules import OffsetHistory
from eosctl.offsets.rows import partition_json

_MOST_NAMED = 3
_LAST_COMMIT_MS = 60_000
"""Tasks that end commit once more, within task.shutdown.graceful.timeout.ms (5 s); clocks may differ."""
_SHORTLY_MS = 600_000
_TELLING = 4  # shorter values are in many texts by chance


class _Change(Struct, frozen=True):
    """A change of the properties `names`, which are not all Connect's own."""

    before: Mapping[str, str]
    after: Mapping[str, str]
    since_ms: int
    names: list[str]
    __repr__ = object.__repr__  # configs may hold secrets


def changed_partitions(
    connector: str, written: Sequence[WrittenConfig], store: Store, history: OffsetHistory
) -> Finding | None:
    """Return the finding of a connector whose source partitions are all other ones since a change of its config."""
    if not written:
        return None
    now = partitions_of(written[-1].config)
    if now.source is None:
        return _all_new(connector, written, store, history)
    since_ms = written[-1].timestamp_ms
    for each in written[-2::-1] if now.expected else ():
        former = partitions_of(each.config)
        if (former.source, former.read) != (now.source, now.read):
            if _was_there_before(now, connector, store, history, since_ms=since_ms):
                return None
            differing = changed_names(each.config, written[-1].config)
            names = [name for name in differing if name in former.read or name in now.read]
            names = names or [name for name in differing if not is_connects_own(name)]
            return _left_behind(connector, (former, now), names, since_ms=since_ms, store=store)
        since_ms = each.timestamp_ms
    return None


def _all_new(connector: str, written: Sequence[WrittenConfig], store: Store, history: OffsetHistory) -> Finding | None:
    """Judge a connector of an unknown class by the keys that it committed before and since its config was changed.

    One with a source partition per file or table ends some of them at any time, and is not accused: all must have been
    committed shortly before the change. Without the changed values in the source partitions it is a note.
    """
    changes = [
        _Change(before.config, after.config, after.timestamp_ms, names)
        for before, after in pairwise(written)
        if (names := [name for name in changed_names(before.config, after.config) if not is_connects_own(name)])
    ]
    if not changes or store.hides_of(connector):
        return None
    keys = _live_keys(connector, store)
    if any(key.raw in store.several for key in keys):
        return None
    since_ms, names = changes[-1].since_ms, changes[-1].names
    old, fresh = list[OffsetKey](), list[OffsetKey]()
    for key in keys:
        record = store.records[key.raw]
        first_ms, last_ms = history.first_ms(key.raw, record.partition), record.timestamp_ms
        if first_ms is None or first_ms < 0 or (first_ms < since_ms and last_ms > since_ms + _LAST_COMMIT_MS):
            return None
        (old if first_ms < since_ms else fresh).append(key)
    if not old or not fresh or min(store.records[key.raw].timestamp_ms for key in old) < since_ms - _SHORTLY_MS:
        return None
    severity = WARNING if _are_named_by(changes[-1], old, fresh) else INFO
    return Finding(
        codes.SOURCE_PARTITIONS_CHANGED, severity, connector,
        f"all source partitions that {connector} has committed since its config of {rfc3339(since_ms)} "
        f"({', '.join(map(shown_name, names))}) are new, as far as {store.topic} shows: {_named(_shown(fresh))}; none "
        f"of those before it was committed again: {_named(_shown(old))}",
        "What the config of this class names is not known. If it started over and was not meant to: "
        f"`eosctl connectors stop {arguments(connector)}`, and put back what was changed.",
        _evidence(old, _shown(fresh), names, since_ms=since_ms, store=store),
    )  # fmt: skip


def _are_named_by(change: _Change, old: Iterable[OffsetKey], fresh: Iterable[OffsetKey]) -> bool:
    """Decide whether all old source partitions have the former value of a property, and all new ones the new one."""
    return any(
        all(_has_value(key.partition, change.before.get(name)) for key in old)
        and all(_has_value(key.partition, change.after.get(name)) for key in fresh)
        for name in change.names
    )


def _has_value(partition: Mapping[str, object] | None, value: str | None) -> bool:
    """Decide whether a source partition has a member of this value, or with a longer one in it."""
    members = [str(each) for each in (partition or {}).values()]
    if not value:
        return False
    return any(each == value or (len(value) >= _TELLING and value in each) for each in members)


def _was_there_before(
    now: ConfigPartitions, connector: str, store: Store, history: OffsetHistory, *, since_ms: int
) -> bool:
    """Decide whether the present source partitions had offsets before the change: they are the former ones again."""
    firsts = (
        history.first_ms(key.raw, store.records[key.raw].partition)
        for key in _live_keys(connector, store)
        if now.belongs(key.partition) is not Belongs.NO
    )
    return any(first is not None and first < since_ms for first in firsts)


def _left_behind(
    connector: str,
    change: tuple[ConfigPartitions, ConfigPartitions],
    names: Sequence[str],
    *,
    since_ms: int,
    store: Store,
) -> Finding | None:
    former, now = change
    left = [key for key in _live_keys(connector, store) if former.belongs(key.partition) is Belongs.YES]
    if not left or any(now.belongs(key.partition) is not Belongs.NO for key in left):
        return None
    last_ms = max(store.records[key.raw].timestamp_ms for key in left)
    if not names or since_ms < 0 or last_ms > since_ms + _LAST_COMMIT_MS:  # a task goes on with the former config
        return None
    old, fresh = _shown(left), [shown_json(dict(each.partition)) for each in now.expected]
    reset = shell_words("eosctl", "offsets", "reset", "--connector", connector, "--partition", json_text(old[0]))
    return Finding(
        codes.SOURCE_PARTITIONS_CHANGED, WARNING, connector,
        f"since its config of {rfc3339(since_ms)} ({', '.join(names)}) {connector} has other source partitions: "
        f"{_named(fresh)}; {counted(len(old), 'offset is', 'offsets are')} left behind: {_named(old)}, last committed "
        f"{rfc3339(last_ms)}",
        f"If not meant: `eosctl connectors stop {arguments(connector)}`, and change {', '.join(names)} back or "
        "give the new source partitions the old offsets (`eosctl offsets set`). "
        f"If meant: `{reset}`{' and so on' if len(old) > 1 else ''}.",
        _evidence(left, fresh, names, since_ms=since_ms, store=store),
    )  # fmt: skip


def _live_keys(connector: str, store: Store) -> list[OffsetKey]:
    return [key for key in store.connectors.get(connector, ()) if live(store.records.get(key.raw)) is not None]


def _shown(keys: Iterable[OffsetKey]) -> list[object]:
    return [partition_json(key) for key in keys]


def _evidence(
    left: Sequence[OffsetKey], fresh: Sequence[object], names: Sequence[str], *, since_ms: int, store: Store
) -> dict[str, object]:
    return {
        "since": rfc3339(since_ms),
        "properties": list(map(shown_name, names)),
        "topic": store.topic,
        "offsets": len(left),
        "left_behind": _shown(left[:_MOST_NAMED]),
        "source_partitions": list(fresh[:_MOST_NAMED]),
        "last_committed": rfc3339(max(store.records[key.raw].timestamp_ms for key in left)),
    }


def _named(partitions: Sequence[object]) -> str:
    """Return the first few source partitions, and how many more there are."""
    more = len(partitions) - _MOST_NAMED
    return ", ".join(map(json_text, partitions[:_MOST_NAMED])) + (f" and {more:,} more" if more > 0 else "")
