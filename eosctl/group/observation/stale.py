"""Connectors' offsets topics that lag behind the global one, which a hard downgrade causes. Pure.

Workers below 3.3 know the global topic only. Once a worker of 3.3 or newer runs the connector again, its own topic
counts, however old: the connector repeats all that it read since.
"""

from __future__ import annotations

from msgspec import Struct

from eosctl.core.offsets.records import is_nothing
from eosctl.core.offsets.views import Store

SLACK_MS = 60_000
"""Workers write the global copy after the commit of the own topic, so that it is a little younger."""


class StaleOffsets(Struct, frozen=True):
    """A connector whose own `topic` lacks, or has older, `keys` offsets of the global one; at most `behind_ms` older.

    `behind_ms` None: its own topic has no offset of it.
    """

    connector: str
    topic: str
    keys: int
    behind_ms: int | None


def stale_offsets(connector: str, own: Store, common: Store) -> StaleOffsets | None:
    """Compare a connector's `own` topic to the `common` one; return None if nothing in `common` is newer."""
    known = {key.identity: own.records[key.raw] for key in own.connectors.get(connector, ())}
    newest_ms = max((record.timestamp_ms for record in known.values()), default=None)
    late = []
    for key in common.connectors.get(connector, ()):
        record, mine = common.records[key.raw], known.get(key.identity)
        is_late = newest_ms is None or record.timestamp_ms > newest_ms + SLACK_MS
        if is_late and not is_nothing(record.value) and (mine is None or mine.value != record.value):
            late.append(record.timestamp_ms)
    if not late:
        return None
    return StaleOffsets(connector, own.topic, len(late), None if newest_ms is None else max(late) - newest_ms)
