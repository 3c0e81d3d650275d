"""Property names that look like exactly-once settings and have no effect: early drafts of KIP-618, and near misses.

Kafka reads four such names from a connector and one from a worker; any other name with such a beginning is silently
ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

CONNECTOR_NAMES = frozenset(
    {"exactly.once.support", "transaction.boundary", "transaction.boundary.interval.ms", "offsets.storage.topic"}
)
WORKER_NAMES = frozenset({"exactly.once.source.support"})
_FAMILIES = ("exactly.once.", "transaction.boundary", "offsets.storage.")

_MEANT_IN_CONNECTOR = {
    "exactly.once.source.support": "exactly.once.support (the other is the worker's)",
    "exactly.once.source.enabled": "exactly.once.support",
    "atomic.source.offset.commit": "exactly.once.source.support of the workers (and exactly.once.support=required)",
    "offset.storage.topic": "offsets.storage.topic",
    "offsets.topic": "offsets.storage.topic",
}
_MEANT_IN_WORKER = {
    "atomic.source.offset.commit": "exactly.once.source.support",
    "exactly.once.source.enabled": "exactly.once.source.support",
    "exactly.once.support": "exactly.once.source.support (the other is a connector's)",
    "offsets.storage.topic": "offset.storage.topic (the other is a connector's)",
    "transaction.boundary": "a connector's property",
    "transaction.boundary.interval.ms": "a connector's property",
}


def idle_connector_names(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield a connector's property names that have no effect, each with the correct name."""
    return _idle(names, CONNECTOR_NAMES, _MEANT_IN_CONNECTOR)


def idle_worker_names(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the same for the names in a worker's properties file."""
    return _idle(names, WORKER_NAMES, _MEANT_IN_WORKER)


def _idle(names: Iterable[str], known: frozenset[str], meant: dict[str, str]) -> Iterator[tuple[str, str]]:
    for name in sorted(set(names) - known):
        if name in meant:
            yield name, meant[name]
        elif name.startswith(_FAMILIES):
            yield name, f"one of {', '.join(sorted(known))}"
