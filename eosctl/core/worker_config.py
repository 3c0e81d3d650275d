"""What eosctl takes from a Connect worker's .properties file; text in, values out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from eosctl.core.client_properties import ClientProperties, client_from_properties
from eosctl.core.java_properties import Properties, parse_properties, split_list

_MODES = ("disabled", "preparing", "enabled")


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """What eosctl takes from one Connect worker's file; None where the file does not say."""

    properties: Properties
    bootstrap_servers: tuple[str, ...]
    group_id: str | None
    config_topic: str | None
    offset_topic: str | None
    status_topic: str | None
    exactly_once: str
    rest_url: str | None

    def client(self, prefix: str = "") -> ClientProperties:
        """The worker's own client settings, or those of its `admin.`, `producer.` or `consumer.` clients.

        Raises InputFileError.
        """
        values = dict(self.properties.values)
        if prefix:
            values |= {key[len(prefix) :]: value for key, value in values.items() if key.startswith(prefix)}
        lines = {key: self.properties.lines.get(prefix + key, self.properties.lines.get(key, 0)) for key in values}
        return client_from_properties(Properties(self.properties.source, values, lines), warn=False)


def parse_worker_config(text: str, *, source: str) -> WorkerConfig:
    """A Connect worker's .properties (`DistributedConfig`, Kafka 4.3). Raises InputFileError."""
    properties = parse_properties(text, source=source)
    values = {key: value.strip() for key, value in properties.values.items()}
    mode = values.get("exactly.once.source.support", "disabled").lower()
    if mode not in _MODES:
        raise properties.error("exactly.once.source.support", f"{mode} is none of {', '.join(_MODES)}")
    return WorkerConfig(
        properties=properties,
        bootstrap_servers=split_list(values.get("bootstrap.servers", "")),
        group_id=values.get("group.id") or None,
        config_topic=values.get("config.storage.topic") or None,
        offset_topic=values.get("offset.storage.topic") or None,
        status_topic=values.get("status.storage.topic") or None,
        exactly_once=mode,
        rest_url=_rest_url(values),
    )


def _rest_url(values: Mapping[str, str]) -> str | None:
    """The URL that the worker tells the others (`RestServer.advertisedUrl`), None when only its host knows it."""
    listeners = split_list(values.get("listeners", "")) or ("http://:8083",)
    wanted = values.get("rest.advertised.listener", "").lower()
    matches = [each for each in listeners if not wanted or each.lower().startswith(f"{wanted}://")]
    first = re.fullmatch(r"(https?)://(.*):(\d+)", (matches or list(listeners))[0], re.IGNORECASE)
    if first is None:
        return None
    host = values.get("rest.advertised.host.name") or first[2]
    port = values.get("rest.advertised.port") or first[3]
    return None if host in ("", "0.0.0.0", "[::]") else f"{first[1].lower()}://{host}:{port}"  # noqa: S104
