"""Plans the writes to a connector's next offsets topic, so that its tasks get the same offsets there as today.

Not `merge_stores`: a topic that was in use before may hold old offsets, which a task would use whatever their age. So
the store in use wins, with its deletions, which the tasks see as such whatever the global store has. The fallback of
KIP-618 only fills the keys that neither has.
"""

from __future__ import annotations

from eosctl.core.offsets.findings import with_stale_copies
from eosctl.core.offsets.records import OffsetKey
from eosctl.core.offsets.views import KeyAction, PlannedWrite, Store, connector_keys, live

ONLY_IN_TARGET = "only_in_target"


def plan_takeover(
    in_use: Store, target: Store, connector: str, *, fallback: Store | None = None, deletions: bool = True
) -> list[PlannedWrite]:
    """Plan one write per key of `connector` in any of the stores, by key bytes, and one for each stale copy.

    A value goes to the partition that the connector's own producer chooses, and to no other. `fallback` is the global
    store if the one in use is dedicated; it may be the target too. Without `deletions` a key deleted in the store in
    use counts as never there: no task has run on it.
    """
    stores = [in_use, target, *([fallback] if fallback is not None else [])]
    keys = connector_keys(stores, connector)
    writes = [_planned(key, in_use, target, fallback, deletions=deletions) for key in keys]
    return with_stale_copies(writes, {target.topic: target})


def _planned(key: OffsetKey, in_use: Store, target: Store, fallback: Store | None, *, deletions: bool) -> PlannedWrite:
    present = target.records.get(key.raw)
    before = present.value if present else None
    deleted = deletions and key.raw in in_use.records and live(in_use.records[key.raw]) is None
    action, reason, after, conflict = (
        _deleted(target, key.raw) if deleted else _decide(key.raw, in_use, target, fallback)
    )
    partition = target.home(key.raw)
    at_home = target.at(key.raw, partition)
    if action is KeyAction.KEEP and live(present) and (at_home is None or at_home.value != before):
        action, reason, after = KeyAction.WRITE, "moved_home", before
    return PlannedWrite(
        action,
        reason,
        key,
        target.topic,
        partition,
        before=present,
        after=before if action is KeyAction.KEEP else after,
        replaces=at_home,
        conflict=conflict,
    )


_Decision = tuple[KeyAction, str, bytes | None, bool]
"""Action, reason, the value to write, and whether the target has another."""


def _deleted(target: Store, raw: bytes) -> _Decision:
    if live(target.records.get(raw)) is None:
        return KeyAction.KEEP, "no_offset", None, False
    return KeyAction.DELETE, "deleted_in_use", None, True


def _decide(raw: bytes, in_use: Store, target: Store, fallback: Store | None) -> _Decision:
    mine, present = live(in_use.records.get(raw)), live(target.records.get(raw))
    documented = live(fallback.records.get(raw)) if fallback is not None else None
    if mine is not None:
        if present is None:
            return KeyAction.WRITE, "missing", mine.value, False
        if present.value == mine.value:
            return KeyAction.KEEP, "equal", None, False
        return KeyAction.WRITE, "in_use_taken", mine.value, True
    if present is not None:
        return KeyAction.KEEP, ONLY_IN_TARGET, None, False
    if documented is not None:
        return KeyAction.WRITE, "from_global", documented.value, False
    return KeyAction.KEEP, "no_offset", None, False
