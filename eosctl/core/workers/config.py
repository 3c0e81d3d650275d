"""The settings that eosctl uses from a Connect worker's .properties file, and the URLs of `--connect-map`. Pure.

Files come as text and leave as values. `--connect-map` gives the URLs of workers whose advertised names can't be
reached from here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.clients.properties import ClientProperties, client_from_properties
from eosctl.core.java.properties import Properties, is_reference, parse_properties, split_list, trimmed
from eosctl.core.versions import is_older
from eosctl.core.workers.modes import (
    CONNECT_SETTING,
    TARGETS,
    choose_flow,
    idle_modes,
    is_mirror_maker_file,
    mode_property,
    moved_together,
    worker_properties_of,
)
from eosctl.core.workers.url import WorkerUrl, advertised, parse_worker_url
from eosctl.errors import UsageError

_TAKEN = (
    *("bootstrap.servers", "group.id", "config.storage.topic", "offset.storage.topic", "status.storage.topic"),
    CONNECT_SETTING,
)

_CREATION_SINCE = (4, 4)
_CREATES_TOPICS = "internal.topics.automatic.creation.enable"


def creates_topics(files: Iterable[Mapping[str, str]], versions: Iterable[str | None] = ()) -> bool | None:
    """Return whether workers create offsets topics; None where neither their files nor their versions show it.

    They can be forbidden to since Kafka 4.4 (KafkaTopicBasedBackingStore.topicInitializer), where True is the default.
    """
    reported = list(versions)
    if reported and all(is_older(each, _CREATION_SINCE) for each in reported):
        return True
    values = [trimmed(file.get(_CREATES_TOPICS, "true")).lower() for file in files]
    if "false" in values:
        return False
    return None if not values or any(map(is_reference, values)) else True


class WorkerConfig(Struct, frozen=True):
    """The settings that eosctl uses from one Connect worker's file.

    They are None where the file has none, or where only the worker can resolve them. `unresolved` are the properties of
    the latter kind: their values refer to one of the worker's config providers. `idle` are names in a MirrorMaker's
    file that seem to set the mode and don't, each with the one that does: `mode_setting`. That one sets the mode of the
    groups in `moved_with` as well.
    """

    properties: Properties
    bootstrap_servers: tuple[str, ...]
    group_id: str | None
    config_topic: str | None
    offset_topic: str | None
    status_topic: str | None
    exactly_once: str | None
    rest_url: str | None
    unresolved: tuple[str, ...] = ()
    idle: tuple[tuple[str, str], ...] = ()
    mode_setting: str = CONNECT_SETTING
    moved_with: tuple[str, ...] = ()

    def client(self, prefix: str = "") -> ClientProperties:
        """Read the worker's own client settings, or those of its `admin.`, `producer.` or `consumer.` clients.

        Raises InputFileError.
        """
        values = dict(self.properties.values)
        if "bootstrap.servers" in self.unresolved:
            del values["bootstrap.servers"]
        if prefix:
            values |= {key[len(prefix) :]: value for key, value in values.items() if key.startswith(prefix)}
        lines = {key: self.properties.lines.get(prefix + key, self.properties.lines.get(key, 0)) for key in values}
        return client_from_properties(Properties(self.properties.source, values, lines), warn=False)


def parse_worker_config(
    text: str, *, source: str, group_id: str | None = None, servers: Sequence[str] = ()
) -> WorkerConfig:
    """Parse a Connect worker's .properties (`DistributedConfig`, Kafka 4.3). Raises InputFileError.

    From a dedicated MirrorMaker's file, read the worker of the flow that `group_id` and `servers`, its brokers, select;
    raises UsageError if they select none, or several.
    """
    properties = parse_properties(text, source=source)
    idle: tuple[tuple[str, str], ...] = ()
    mode_setting = CONNECT_SETTING
    moved_with: tuple[str, ...] = ()
    if is_mirror_maker_file(properties):
        flow = choose_flow(properties, group_id=group_id, servers=servers)
        idle, mode_setting = tuple(idle_modes(properties, flow)), mode_property(flow)
        moved_with = tuple(moved_together(properties, flow))
        properties = worker_properties_of(properties, flow)
    properties = replace(properties, values={key: trimmed(value) for key, value in properties.values.items()})
    unresolved = [name for name in _TAKEN if is_reference(properties.values.get(name, ""))]
    values = {key: value for key, value in properties.values.items() if key not in unresolved}
    mode = values.get(CONNECT_SETTING, "disabled").lower()
    if mode not in TARGETS:
        raise properties.error(CONNECT_SETTING, f"{mode} is none of {', '.join(TARGETS)}")
    where = advertised(properties.values)
    return WorkerConfig(
        properties=properties,
        bootstrap_servers=split_list(values.get("bootstrap.servers", "")),
        group_id=values.get("group.id") or None,
        config_topic=values.get("config.storage.topic") or None,
        offset_topic=values.get("offset.storage.topic") or None,
        status_topic=values.get("status.storage.topic") or None,
        exactly_once=None if CONNECT_SETTING in unresolved else mode,
        rest_url=where.url,
        unresolved=(*unresolved, *where.unresolved),
        idle=idle,
        mode_setting=mode_setting,
        moved_with=moved_with,
    )


_ANY = "*"
_PART_OF_A_NAME = "([A-Za-z0-9._-]*)"
"""The characters that `*` matches: none that could end a host name."""
_EXAMPLE = "Write ADVERTISED=REACHABLE, say, --connect-map 'connect-*:8083=http://127.0.0.1:1808*'."


class ConnectMapping(Struct, frozen=True):
    """A mapping of an `advertised` URL, HOST:PORT or HOST.

    Each `*` in `reachable` is replaced by the text that the same `*` in `advertised` matches.
    """

    advertised: str
    reachable: str

    def __str__(self) -> str:
        return f"{self.advertised}={self.reachable}"

    def reach(self, url: WorkerUrl) -> str | None:
        """Return the URL at which the worker that advertises `url` is reached; None where the mapping does not apply.

        A scheme or port that `reachable` omits is the advertised one.
        """
        parts = urlsplit(url.text)
        whole = "://" in self.advertised
        spellings = [url.text] if whole else [parts.netloc, parts.netloc.rpartition(":")[0]]
        pattern = _PART_OF_A_NAME.join(re.escape(part) for part in self.advertised.rstrip("/").split(_ANY))
        found = next((hit for each in spellings if (hit := re.fullmatch(pattern, each, re.IGNORECASE))), None)
        if found is None:
            return None
        matches = iter(found.groups())
        reached = re.sub(r"\*", lambda _star: next(matches), self.reachable)
        if "://" in reached:
            return parse_worker_url(reached).text
        port = "" if re.search(r":\d+$", reached) else f":{parts.port}"
        return parse_worker_url(f"{parts.scheme}://{reached}{port}").text

    def named_origins(self) -> frozenset[str]:
        """Return the origins without port (`https://host`) that it names; none where a host contains `*`."""
        with_scheme = self.reachable if "://" in self.reachable else f"http://{self.reachable}"
        host = re.sub(r":[\d*]*$", "", with_scheme.partition("://")[2].partition("/")[0])
        schemes = [with_scheme.partition("://")[0]] if "://" in self.reachable else ["http", "https"]
        return frozenset() if _ANY in host else frozenset(f"{scheme}://{host.lower()}" for scheme in schemes)


def parse_connect_map(texts: Iterable[str]) -> tuple[ConnectMapping, ...]:
    """Parse ADVERTISED=REACHABLE mappings; raises UsageError for any other text."""
    return tuple(_parsed(text) for text in texts)


def _parsed(text: str) -> ConnectMapping:
    advertised, equals, reachable = (part.strip() for part in text.partition("="))
    if not (equals and advertised and reachable) or "=" in reachable:
        raise UsageError(f"{text!r} maps no worker", hint=_EXAMPLE)
    if reachable.count(_ANY) > advertised.count(_ANY):
        raise UsageError(f"{text!r}: there are more * behind the = than before it", hint=_EXAMPLE)
    parsed = parse_worker_url(reachable.replace(_ANY, "1"))
    if parsed.authorization is not None:
        raise UsageError(
            "a password has no place in --connect-map", hint="Use --connect-username with --connect-password-file."
        )
    return ConnectMapping(advertised, reachable)


def reachable_url(url: str, mappings: Sequence[ConnectMapping]) -> str:
    """Return the URL at which the worker at `url` is reached, by the first mapping that applies; else `url` itself."""
    if not mappings:
        return url
    parsed = parse_worker_url(url)
    return next((reached for each in mappings if (reached := each.reach(parsed)) is not None), url)
