"""Settings of a connector, most of them numbers: from its config, else the workers' files, else Kafka's default. Pure.

A setting that can't be read as Kafka reads it is unknown: it is a finding, and never the default.
"""

from __future__ import annotations

from msgspec import Struct

from eosctl.core.findings import WARNING, Finding
from eosctl.core.java.numbers import INT_BITS, LONG_BITS, java_number
from eosctl.core.java.properties import is_reference, trimmed
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
