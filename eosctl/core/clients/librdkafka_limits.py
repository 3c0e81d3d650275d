"""Clamps or drops settings that Java's clients accept and with which librdkafka refuses to start. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from eosctl.core.java.numbers import whole_number

REQUEST_TIMEOUT = "socket.timeout.ms"
LARGEST_RECORD: Mapping[str, object] = {"message.max.bytes": 1_000_000_000}
"""For producers: the topic limits the size of a record; librdkafka by default refuses one of a million bytes."""
_LARGEST_INT = 2_147_483_647
_BACKOFF, _LONGEST_BACKOFF = "reconnect.backoff.ms", "reconnect.backoff.max.ms"
_BACKOFF_MS, _LONGEST_BACKOFF_MS = 100, 10_000  # librdkafka's defaults


class _Range(Struct, frozen=True):
    """The range that librdkafka 2.16 accepts; a smaller value becomes its default if Java's number means the same."""

    lowest: int
    highest: int
    default_below: bool = False


_RANGES = {
    REQUEST_TIMEOUT: _Range(10, 300_000),
    "socket.send.buffer.bytes": _Range(0, 100_000_000, default_below=True),  # -1 is the system's size, its default too
    "socket.receive.buffer.bytes": _Range(0, 100_000_000, default_below=True),
    "retry.backoff.ms": _Range(1, 300_000),
    _BACKOFF: _Range(0, 3_600_000),
    _LONGEST_BACKOFF: _Range(0, 3_600_000),
    "metadata.max.age.ms": _Range(1, 86_400_000, default_below=True),  # 0 would ask again all the time
    "connections.max.idle.ms": _Range(0, _LARGEST_INT, default_below=True),  # never, for both
    "socket.connection.setup.timeout.ms": _Range(1000, _LARGEST_INT),
}
_JAVA_ONLY = {("client.dns.lookup", "default")}


def fitted(given: Mapping[str, str]) -> dict[str, str]:
    """Return `given` (librdkafka's names, Java's values) fitted to the values with which librdkafka starts.

    A value out of range becomes the nearest one in range, or is dropped. Values that Java would refuse as well stay,
    for librdkafka to refuse.
    """
    taken = {name: _taken(name, value) for name, value in given.items()}
    values = {name: value for name, value in taken.items() if value is not None}
    numbers = {name: int(value) for name, value in values.items() if name in _RANGES and _is_number(value)}
    backoff_ms = numbers.get(_BACKOFF, _BACKOFF_MS)
    longest_ms = numbers.get(_LONGEST_BACKOFF, max(_LONGEST_BACKOFF_MS, backoff_ms))
    if longest_ms > _LONGEST_BACKOFF_MS:
        values[_LONGEST_BACKOFF] = str(longest_ms)
    if backoff_ms > longest_ms:
        values[_BACKOFF] = str(longest_ms)
    return values


def _taken(name: str, value: str) -> str | None:
    limits = _RANGES.get(name)
    if (name, value) in _JAVA_ONLY:
        return None
    if limits is None or not _is_number(value):
        return value
    if int(value) < limits.lowest and limits.default_below:
        return None
    return str(min(max(int(value), limits.lowest), limits.highest))


def _is_number(value: str) -> bool:
    return whole_number(value.removeprefix("-")) is not None
