"""Settings of a connector, most of them numbers: from its config, else the workers' files, else Kafka's default. Pure.

What is set and can't be read as Kafka reads it is not known: it is a finding, and never the default.
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
    """`source` is the name under which it is set, empty for the default; `number` None: it can't be known."""

    source: str
    text: str
    number: int | None

    def unknown(self, connector: str) -> Finding:
        """The finding where it can't be known."""
        return unknown_value(connector, self.source, self.text)


def unknown_value(connector: str, source: str, text: str) -> Finding:
    """A setting that could not be judged, and why."""
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
    """What `override` in the config says, else `setting` in the workers' files, where those agree."""
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
    """The transaction timeout of the connector's tasks."""
    return number_setting(
        connector, observation, "producer.override.transaction.timeout.ms", "producer.transaction.timeout.ms",
        default=DEFAULT_TRANSACTION_TIMEOUT_MS,
    )  # fmt: skip


def boundary_setting(connector: ObservedConnector) -> str:
    """The connector's transaction boundary, in small letters; `poll` where its config names none."""
    return trimmed(connector.config.get("transaction.boundary", "poll")).lower()


def commit_interval(connector: ObservedConnector, observation: Observation) -> NumberSetting:
    """After how many ms a connector with boundary `interval` commits."""
    return number_setting(
        connector, observation, "transaction.boundary.interval.ms", "offset.flush.interval.ms",
        default=DEFAULT_INTERVAL_MS, bits=LONG_BITS,
    )  # fmt: skip


def flush_interval(connector: ObservedConnector, observation: Observation) -> NumberSetting:
    """After how many ms workers commit the offsets of tasks that write no transactions."""
    return number_setting(
        connector, observation, None, "offset.flush.interval.ms", default=DEFAULT_INTERVAL_MS, bits=LONG_BITS
    )


def backoff(connector: ObservedConnector, observation: Observation, name: str) -> NumberSetting:
    """A setting of the admin client by which Connect paces the fencing of ids; whatever its default."""
    return number_setting(connector, observation, f"admin.override.{name}", f"admin.{name}", default=0, bits=LONG_BITS)
