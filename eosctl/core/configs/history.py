"""The former configs of connectors, as far as the config topic still has them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from msgspec import Struct

from eosctl.core.configs.records import (
    OFFSETS_TOPIC,
    RecordKind,
    UnparsableValueError,
    decode_key_text,
    decode_value,
    parse_key,
)
from eosctl.core.records import Record


class WrittenConfig(Struct, frozen=True):
    """A config of a connector, and when its record was written."""

    config: Mapping[str, str]
    timestamp_ms: int
    __repr__ = object.__repr__  # it may hold secrets


def written_configs(records: Iterable[Record]) -> Mapping[str, Sequence[WrittenConfig]]:
    """Map each connector to its configs, the newest last.

    Only as far as the records show, which come in offset order; records before a connector's deletion do not count.
    """
    found: dict[str, list[WrittenConfig]] = {}
    for record in records:
        key = parse_key(decode_key_text(record.key or b""))
        if key.kind is not RecordKind.CONNECTOR:
            continue
        try:
            value = decode_value(record.value)
        except UnparsableValueError:
            continue
        properties = value.get("properties") if isinstance(value, Mapping) else None
        if not isinstance(properties, Mapping):
            found.pop(key.name, None)
            continue
        config = {str(name): "" if each is None else str(each) for name, each in properties.items()}
        found.setdefault(key.name, []).append(WrittenConfig(config, record.timestamp_ms))
    return found


def former_offsets_topics(configs: Mapping[str, Sequence[WrittenConfig]]) -> Mapping[str, str]:
    """Map each connector to the previous offsets topic of its configs, "" for the workers' own."""
    former: dict[str, str] = {}
    for name, written in configs.items():
        topics = [topic for topic, _same in groupby(each.config.get(OFFSETS_TOPIC, "") for each in written)]
        if len(topics) > 1:
            former[name] = topics[-2]
    return former
