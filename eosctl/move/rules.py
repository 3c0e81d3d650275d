"""What a move makes of a config and of offsets, and which steps are left of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from eosctl.core.clients.hidden_secrets import shown_value
from eosctl.core.configs.given_settings import NAME
from eosctl.core.java.properties import is_reference
from eosctl.core.offsets.records import OffsetKey, decode_key, key_owner, renamed_key
from eosctl.core.offsets.views import KeyAction, PlannedWrite, Store, live
from eosctl.core.records import Record
from eosctl.move.journal import BegunMove, MoveStep
from eosctl.offsets.switch.takeover import ONLY_IN_TARGET


def shown_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings fit to be shown and kept: `***` for values that are not known to be harmless."""
    return {name: str(shown_value(name, value)) for name, value in settings.items()}


def config_there(config: Mapping[str, str], name: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the config that the connector gets there: that of here, under its name there, with the settings."""
    return {**config, **settings, NAME: name}


def resolved_there(config: Mapping[str, str]) -> list[str]:
    """Return the settings whose values refer to config providers, which the workers there resolve."""
    return sorted(name for name, value in config.items() if is_reference(value))


def renamed_store(store: Store, connector: str, name: str) -> Store:
    """Return the offsets of `connector` alone, under the keys that they have as those of `name`; bytes stay else."""

    def key_of(raw: bytes) -> bytes:
        owner = key_owner(raw)
        return raw if owner is None or connector == name else renamed_key(raw, owner, name)

    def record_of(record: Record) -> Record:
        return record._replace(key=key_of(record.key or b""))

    keys = store.connectors.get(connector, ())
    named = {key.raw: decode_key(key_of(key.raw)) for key in keys}
    return Store(
        store.topic,
        store.partitions,
        partition_for=store.partition_for,
        records={key_of(raw): record_of(store.records[raw]) for raw in named if raw in store.records},
        connectors={name: [key for key in named.values() if isinstance(key, OffsetKey)]} if named else {},
    )


def in_use(own: Store, fallback: Store | None, connector: str, name: str) -> Store:
    """Return the documented view of the connector's offsets under the keys of `name`: its own topic over the global."""
    found = renamed_store(own, connector, name)
    if fallback is None:
        return found
    other = renamed_store(fallback, connector, name)
    keys = {key.raw: key for store in (other, found) for key in store.connectors.get(name, ())}
    return replace(
        found, records={**other.records, **found.records}, connectors={name: [*keys.values()]} if keys else {}
    )


def steps_there(
    *, state: str, begun: BegunMove | None, there_state: str | None, stopped: str, has_audit: bool
) -> tuple[MoveStep, ...]:
    """Return the steps of a move that are left; the journal shows whether it may have run there.

    Until then all of them are done again, as each is safe to repeat.
    """
    audit = [MoveStep.AUDIT] if has_audit else []
    first = [MoveStep.STOP, MoveStep.SETTLE, MoveStep.CREATE, MoveStep.OFFSETS, MoveStep.CHECK]
    last = [] if state == stopped else [MoveStep.RESUME, MoveStep.WATCH, *audit]
    if begun is None or not begun.is_handed_over:
        return (*first, *last)
    if begun.ended:
        return ()
    return tuple(step for step in last if step is not MoveStep.RESUME or there_state != state)


def leftovers(writes: Sequence[PlannedWrite], name: str) -> list[PlannedWrite]:
    """Return the writes of keys that have another offset there already, which nothing of the source accounts for."""
    return [write for write in writes if write.key.connector == name and (write.conflict or _is_only_there(write))]


def _is_only_there(write: PlannedWrite) -> bool:
    return write.action is KeyAction.KEEP and live(write.before) is not None and write.reason == ONLY_IN_TARGET
