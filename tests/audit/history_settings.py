"""What kind of cluster and connector a history is of. Pure."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """What kind of cluster and connector it is; `own_from` is the share of the time before transaction version 2.

    `apart_ms` is how far the brokers' clocks are apart at most, `spread_ms` how long the markers of a transaction take;
    `late` says that one of them may take a minute, as its leader is away. A transaction takes about `every_ms`.
    """

    own_from: float = 0.0
    apart_ms: int = 0
    drifts: bool = False
    leaders_move: bool = False
    every_ms: int = 1000
    spread_ms: int = 5
    late: bool = False
    lost_markers: bool = False
    restarts: float = 0.1
    aborts: float = 0.1
    tasks: int = 2
    partitions: int = 2
    offsets_partitions: int = 1
    new_ids: bool = False
    rebalances: bool = False
    other_connector: bool = False
    application: bool = False
    forgotten: bool = False
    retention: bool = False
    compaction: bool = False
    compacted_output: bool = False
    lost_offsets: bool = False
    window: str = ""
    live: bool = False


def any_setting(rng: random.Random) -> Setting:
    """Return any setting, within what an audit has to stand."""

    def maybe(share: float) -> bool:
        return rng.random() < share

    return Setting(
        own_from=rng.choice((0.0, 0.0, 2.0, 2.0, 0.5)),
        apart_ms=rng.choice((0, 10, 20, 300, 1000, 3000, 3000)),
        drifts=maybe(0.3),
        leaders_move=maybe(0.1),
        every_ms=rng.choice((5, 20, 50, 200, 1000, 1000, 5000, 60_000)),
        spread_ms=rng.choice((2, 5, 10, 20, 60)),
        late=maybe(0.1),
        lost_markers=maybe(0.05),
        restarts=rng.choice((0.0, 0.1, 0.3)),
        aborts=rng.choice((0.0, 0.1, 0.3)),
        tasks=rng.randrange(1, 4),
        partitions=rng.randrange(1, 4),
        offsets_partitions=rng.choice((1, 1, 3)),
        new_ids=maybe(0.05),
        rebalances=maybe(0.1),
        other_connector=maybe(0.2),
        application=maybe(0.02),
        forgotten=maybe(0.05),
        retention=maybe(0.1),
        compaction=maybe(0.15),
        compacted_output=maybe(0.05),
        lost_offsets=maybe(0.03),
        window=rng.choice(("", "", "", "", "since", "until", "both", "offset", "begin")),
        live=maybe(0.1),
    )
