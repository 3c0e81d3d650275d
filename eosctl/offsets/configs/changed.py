"""Finds connectors that left their source partitions behind when their config was changed. Pure.

Found are known connectors alone, by two configs in the config topic: the former one names the source partitions whose
offsets are there, the present one rules them out and names others. Nothing is claimed where a rule has no answer, where
the former config was compacted away, or where a source partition stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from eosctl.core.configs.history import WrittenConfig
from eosctl.core.findings import WARNING, Finding
from eosctl.core.offsets.records import json_text, shown_json, shown_partition
from eosctl.core.offsets.views import Store, live
from eosctl.core.wording import counted, rfc3339
from eosctl.foreign import arguments, shell_words
from eosctl.offsets import codes
from eosctl.offsets.history.config_changes import ConfigPartitions, partitions_of
from eosctl.offsets.history.config_reader import Belongs

_MOST_NAMED = 3
_LAST_COMMIT_MS = 60_000
"""Tasks that end commit once more, within task.shutdown.graceful.timeout.ms (5 s); clocks may differ."""


def changed_partitions(connector: str, written: Sequence[WrittenConfig], store: Store) -> Finding | None:
    """Return the finding of a connector whose source partitions are all other ones since a change of its config."""
    configs = [(partitions_of(each.config), each.timestamp_ms) for each in written]
    if not configs or not (now := configs[-1][0]).is_complete:
        return None
    since_ms = configs[-1][1]
    for former, written_ms in reversed(configs[:-1]):
        if (former.source, former.read) != (now.source, now.read):
            return _left_behind(connector, (former, now), since_ms, store)
        since_ms = written_ms
    return None


def _left_behind(
    connector: str, change: tuple[ConfigPartitions, ConfigPartitions], since_ms: int, store: Store
) -> Finding | None:
    former, now = change
    keys = [key for key in store.connectors.get(connector, ()) if live(store.records.get(key.raw)) is not None]
    left = [key for key in keys if former.belongs(key.partition) is Belongs.YES]
    if not left or any(now.belongs(key.partition) is not Belongs.NO for key in left):
        return None
    last_ms = max(store.records[key.raw].timestamp_ms for key in left)
    if since_ms < 0 or last_ms > since_ms + _LAST_COMMIT_MS:  # a task goes on with the former config
        return None
    names = sorted(name for name in {**former.read, **now.read} if former.read.get(name) != now.read.get(name))
    old, fresh = [shown_partition(key) for key in left], [shown_json(dict(each.partition)) for each in now.expected]
    reset = shell_words("eosctl", "offsets", "reset", "--connector", connector, "--partition", json_text(old[0]))
    since, committed = rfc3339(since_ms), rfc3339(last_ms)
    return Finding(
        codes.SOURCE_PARTITIONS_CHANGED, WARNING, connector,
        f"since its config of {since} ({', '.join(names)}) {connector} has other source partitions: {_named(fresh)}; "
        f"{counted(len(old), 'offset is', 'offsets are')} left behind: {_named(old)}, last committed {committed}",
        f"If it was not meant: `eosctl connectors stop {arguments(connector)}`, and change {', '.join(names)} back or "
        "give the new source partitions the old offsets (`eosctl offsets set`). "
        f"If it was: `{reset}`{' and so on' if len(old) > 1 else ''}.",
        {
            "since": since,
            "properties": names,
            "offsets": len(old),
            "left_behind": old[:_MOST_NAMED],
            "source_partitions": fresh[:_MOST_NAMED],
            "last_committed": committed,
        },
    )  # fmt: skip


def _named(partitions: Sequence[object]) -> str:
    """Return the first few source partitions, and how many more there are."""
    more = len(partitions) - _MOST_NAMED
    return ", ".join(map(json_text, partitions[:_MOST_NAMED])) + (f" and {more:,} more" if more > 0 else "")
