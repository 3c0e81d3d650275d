"""Client settings that affect a connector's exactly-once tasks: some kill them, some are ignored by Connect. Pure.

An idempotent producer refuses some settings (`ProducerConfig.postProcessAndValidateIdempotenceConfigs`). Connect
overrides others that exactly-once requires, with a line in the worker's log (`ConnectUtils.ensureProperty`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from eosctl.core.findings import ERROR, WARNING, Finding
from eosctl.core.java.numbers import java_number
from eosctl.core.java.properties import is_reference, trimmed
from eosctl.failures import codes as failure_codes
from eosctl.group import codes as group_codes
from eosctl.group.observation.override_policy import refused_overrides
from eosctl.group.observation.rules import Observation, ObservedConnector
from eosctl.observation.connectors.number_settings import unknown_value

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
