"""Settings of a connector that matter to exactly-once: their values, and those that kill or have no effect. Pure.

Most of them are numbers: from the connector's config, else the workers' files, else Kafka's default. A setting that
can't be read as Kafka reads it is unknown: it is a finding, and never the default.

Client settings kill some exactly-once tasks, and are in part ignored by Connect. An idempotent producer refuses some
settings (`ProducerConfig.postProcessAndValidateIdempotenceConfigs`). Connect overrides others that exactly-once
requires, with a line in the worker's log (`ConnectUtils.ensureProperty`).

Some property names look like exactly-once settings and have no effect: early drafts of KIP-618, and near misses. Kafka
reads four such names from a connector and one from a worker; any other name with such a beginning is silently ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from eosctl.core.findings import ERROR, WARNING, Finding
from eosctl.core.java.properties import INT_BITS, LONG_BITS, is_reference, java_number, trimmed
from eosctl.failures import codes as failure_codes
from eosctl.group import codes as group_codes
from eosctl.group.observation.holders import refused_overrides
from eosctl.group.observation.rules import Observation, ObservedConnector
from eosctl.observation.connectors import codes

DEFAULT_TRANSACTION_TIMEOUT_MS = 60_000
DEFAULT_INTERVAL_MS = 60_000


class NumberSetting(Struct, frozen=True):
    """A setting; `source` is the name under which it is set, empty for the default; `number` is None if unknown."""

    source: str
    text: str
    number: int | None

    def unknown(self, connector: str) -> Finding:
        """Return the finding that the setting is unknown."""
        return unknown_value(connector, self.source, self.text)


def unknown_value(connector: str, source: str, text: str) -> Finding:
    """Return the finding that a setting could not be judged, and why."""
    if is_reference(text):
        why, fix = "which only its worker can resolve", "Put the value itself into the config; it is no secret."
    else:
        why, fix = "which Kafka does not read as a number", "Give a number."
    return Finding(
        codes.VALUE_UNKNOWN, WARNING, connector, f"{connector}: {source}={text}, {why}: it was not judged", fix,
        {source: text}, certain=False,
    )  # fmt: skip


def number_setting(
    connector: ObservedConnector,
    observation: Observation,
    override: str | None,
    setting: str | None,
    *,
    default: int,
    bits: int = INT_BITS,
) -> NumberSetting:
    """Return the setting `override` of the config, else `setting` of the workers' files, if those agree."""
    text, source = (connector.config.get(override), override) if override else (None, "")
    if text is None and setting is not None:
        texts = {file.properties.get(setting) for file in observation.files}
        if len(texts) > 1:
            return NumberSetting(setting, " or ".join(sorted(each or "the default" for each in texts)), None)
        text, source = next(iter(texts), None), setting
    return (
        NumberSetting("", "", default)
        if text is None
        else NumberSetting(source or "", text, java_number(text, bits=bits))
    )


def transaction_timeout(connector: ObservedConnector, observation: Observation) -> NumberSetting:
    """Return the transaction timeout of the connector's tasks."""
    return number_setting(
        connector, observation, "producer.override.transaction.timeout.ms", "producer.transaction.timeout.ms",
        default=DEFAULT_TRANSACTION_TIMEOUT_MS,
    )  # fmt: skip


def boundary_setting(connector: ObservedConnector) -> str:
    """Return the connector's transaction boundary in lower case; `poll` by default."""
    return trimmed(connector.config.get("transaction.boundary", "poll")).lower()


def commit_interval(connector: ObservedConnector, observation: Observation) -> NumberSetting:
    """Return the interval, in ms, at which a connector with boundary `interval` commits."""
    return number_setting(
        connector, observation, "transaction.boundary.interval.ms", "offset.flush.interval.ms",
        default=DEFAULT_INTERVAL_MS, bits=LONG_BITS,
    )  # fmt: skip


def flush_interval(connector: ObservedConnector, observation: Observation) -> NumberSetting:
    """Return the interval, in ms, at which workers commit the offsets of tasks without transactions."""
    return number_setting(
        connector, observation, None, "offset.flush.interval.ms", default=DEFAULT_INTERVAL_MS, bits=LONG_BITS
    )


def backoff(connector: ObservedConnector, observation: Observation, name: str) -> NumberSetting:
    """Return an admin client setting by which Connect paces the fencing of ids; 0 by default."""
    return number_setting(connector, observation, f"admin.override.{name}", f"admin.{name}", default=0, bits=LONG_BITS)


_IN_FLIGHT = "max.in.flight.requests.per.connection"
_DEADLY: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "acks": (lambda value: value not in ("all", "-1"), "all"),
    "retries": (lambda value: java_number(value) == 0, "2147483647"),
    _IN_FLIGHT: (lambda value: (java_number(value) or 0) > 5, "5"),
}
"""Setting of the producer -> a predicate for refused values, and an accepted value."""
_NUMBERS = frozenset({"retries", _IN_FLIGHT})
_IGNORED: Mapping[str, tuple[str, str]] = {
    "producer.override.enable.idempotence": ("false", "true"),
    "producer.override.transactional.id": ("", "an id of Connect's own"),
    "consumer.override.isolation.level": ("read_uncommitted", "read_committed"),
}
"""Override -> the ignored value (empty: any), and the value used instead."""


def client_overrides(connector: ObservedConnector, observation: Observation) -> Iterable[Finding]:
    """Find settings that kill an exactly-once task at its start, have no effect on it, or are refused by workers."""
    for name, (is_refused, good) in _DEADLY.items():
        override, setting = f"producer.override.{name}", f"producer.{name}"
        source = override if connector.config.get(override) else setting
        value = trimmed(connector.config.get(override) or observation.worker_setting(setting) or "")
        if is_reference(value) or (value and name in _NUMBERS and java_number(value) is None):
            yield unknown_value(connector.name, source, value)
        elif value and is_refused(value):
            yield Finding(
                failure_codes.PRODUCER_REFUSES, ERROR, connector.name,
                f"{connector.name}: {source}={value}, which an idempotent producer refuses: its tasks fail at their "
                "start",
                f"Remove it, or set {source}={good}.", {source: value},
            )  # fmt: skip
    for override, (ignored, taken) in _IGNORED.items():
        value = connector.config.get(override, "").strip()
        if value and ignored in ("", value.lower()):
            yield Finding(
                group_codes.OVERRIDE_IGNORED, WARNING, connector.name,
                f"{connector.name}: {override}={value} has no effect on exactly-once tasks, which have {taken}",
                group_codes.OVERRIDE_IGNORED.next, {override: value},
            )  # fmt: skip
    yield from refused_overrides(connector, observation)


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
