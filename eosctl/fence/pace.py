"""Estimates how long Connect's own fencing of a connector takes, and whether it ends, from the retry backoff.

Connect fences one id, then waits for the admin client's backoff, per coordinator, so the number of recorded tasks is a
downtime at each reconfiguration (Kafka 3.7 to 4.3; `AdminApiDriver`). Older clients wait 100 ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum, unique

from eosctl.core.fencing_rounds import CURE, ROUND_S
from eosctl.core.java.numbers import LONG_BITS, java_number
from eosctl.group.observation.override_policy import OverridePolicy

FORWARD_S = 30.0
"""The time for which a follower waits for the leader's round before its task fails."""
SLOW_S = 10.0
_BACKOFF_MS = 100
_BACKOFF_MAX_MS = 1000
_EXPONENTIAL_SINCE = (3, 7)


@unique
class Pace(StrEnum):
    """`lossy`: followers' tasks fail while the round goes on; `impossible`: the round never ends."""

    FINE = "fine"
    SLOW = "slow"
    LOSSY = "lossy"
    IMPOSSIBLE = "impossible"


def pause_ms(
    config: Mapping[str, str], worker: Mapping[str, str], *, oldest_version: tuple[int, int] | None = None
) -> int:
    """Return the milliseconds between two ids of one coordinator; a connector's overrides precede worker settings.

    `oldest_version` is that of the workers; None counts as 3.7 or newer, where the backoff grows up to its maximum.
    """
    backoff_ms = _setting("retry.backoff.ms", config, worker, _BACKOFF_MS)
    if backoff_ms == 0 or (oldest_version is not None and oldest_version < _EXPONENTIAL_SINCE):
        return backoff_ms
    return _setting("retry.backoff.max.ms", config, worker, _BACKOFF_MAX_MS)


def _setting(name: str, config: Mapping[str, str], worker: Mapping[str, str], default: int) -> int:
    text = config.get(f"admin.override.{name}") or worker.get(f"admin.{name}") or ""
    number = java_number(text, bits=LONG_BITS)
    return default if number is None or number < 0 else number  # Kafka takes none below 0


def round_s(ids_per_coordinator: int, pause: int) -> float:
    """Return the duration of one fencing round, in seconds."""
    return ids_per_coordinator * pause / 1000


def pace_of(seconds: float, *, workers: int) -> Pace:
    """Classify a round of that length by its effect on the tasks of a group of `workers`."""
    if seconds > ROUND_S:
        return Pace.IMPOSSIBLE
    if seconds > FORWARD_S and workers > 1:
        return Pace.LOSSY
    return Pace.SLOW if seconds >= SLOW_S else Pace.FINE


def cure_of(policy: OverridePolicy | None) -> Mapping[str, str]:
    """Return the two settings that cure it: of the connector, or of the workers where their policy refuses those."""
    refused = policy is not None and any(policy.refuses(name.removeprefix("admin.override.")) for name in CURE)
    return {name.replace(".override.", ".") if refused else name: value for name, value in CURE.items()}


def cure_text(policy: OverridePolicy | None, config: str = "its config") -> str:
    """Format the two settings that cure it, and where to set them; `config` names the connector's config."""
    cure = cure_of(policy)
    where = config if cure == CURE else "the workers' files, whose policy refuses them in a connector's config"
    return f"{' and '.join(f'{name}={value}' for name, value in cure.items())} in {where}"
