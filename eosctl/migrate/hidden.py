"""The keys of a migration's topics that open transactions hide."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from eosctl.app import App
from eosctl.core.offsets.migration import PlannedTopic
from eosctl.core.offsets.migration_results import Mismatch
from eosctl.core.offsets.records import OffsetKey, decode_key
from eosctl.migrate.topics import app_of
from eosctl.offsets.comparison import HIDDEN


def hidden_offsets(
    app: App, topics: Sequence[PlannedTopic], connectors: Collection[str], *, side: str
) -> tuple[Mismatch, ...]:
    """The keys of `connectors` that open transactions hide in `topics`, as they are now, by topic and key."""
    found: dict[tuple[str, bytes], Mismatch] = {}
    for topic in topics:
        held_back = set(topic.has_open_transaction())
        if topic.file is not None or not held_back:
            continue
        with app_of(app, topic).topics() as store:
            behind = store.read_behind(topic.topic, [one for one in topic.bounds if one.partition in held_back])
        for record in behind:
            key = decode_key(record.key)
            if isinstance(key, OffsetKey) and key.connector in connectors:
                found[topic.name, key.raw] = Mismatch(
                    side, HIDDEN, key.connector, topic.name, record.partition, key.raw, None, None
                )
    return tuple(hidden for _place, hidden in sorted(found.items()))
