"""Workers that can't read the config topic up to the offset that each rebalance assigns."""

from __future__ import annotations

from collections.abc import Iterable

from eosctl.codes import finding
from eosctl.core.configs.fold import ConfigState
from eosctl.core.findings import ERROR, Finding
from eosctl.core.records import TopicRead

BEHIND_AFTER_MS = 60_000
"""The least age of the first record that such a worker lacks: a slow reader has passed it by then."""

WORKER_BEHIND = finding(
    "worker_behind",
    "A worker does not read the config topic up to the group's offset, and what it lacks is older than a "
    "minute. It starts nothing, and makes the group rebalance again and again.",
    "Have the record compacted away at which its reader fails (`eosctl task-counts validate`), then restart it.",
)


def behind_findings(
    worker: str, offsets: tuple[int, int], *, read: TopicRead, state: ConfigState, now_ms: int
) -> Iterable[Finding]:
    """Report a worker that lags behind the group in the config topic.

    `offsets` are the next offset that the worker would read, and the one that the group has assigned.
    """
    own, wanted = offsets
    lacking = [record for record in read.records if record.offset >= own]
    written_ms = lacking[0].timestamp_ms if lacking else -1  # else it was compacted away, and is old
    if written_ms >= 0 and now_ms - written_ms < BEHIND_AFTER_MS:
        return
    end = max((bound.end for bound in read.bounds), default=wanted)
    age = f"; what it lacks was written {(now_ms - written_ms) // 60_000:,} m ago" if written_ms >= 0 else ""
    yield Finding(
        WORKER_BEHIND, ERROR, worker,
        f"{worker} has read the config topic up to offset {own}, the group {wanted} (the topic ends at {end}){age}: it "
        "stays behind, starts nothing that it is assigned, and makes the group rebalance again and again",
        "Have the record compacted away at which its reader fails (`eosctl task-counts clean`), then restart it; no "
        "other worker before."
        if state.unreadable()
        else "Restart it. If it stays behind again, its log says why (`Error polling`).",
        {"config_offset": own, "group_offset": wanted, "end_offset": end},
    )  # fmt: skip
