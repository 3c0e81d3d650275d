"""The user's connector and worker, fitted to a sandbox: neither may write to a real Kafka cluster. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator, Mapping

from msgspec import Struct

from eosctl.core.clients.hidden_secrets import shown_address, shown_value
from eosctl.core.configs.records import MIRROR_SOURCE, is_class
from eosctl.core.java.properties import Properties, java_number
from eosctl.core.kept.plan_file import json_of
from eosctl.errors import InputFileError, RefusedError
from eosctl.observation.gather import SUPPORT_PROPERTY

DEFAULT_NAME = "rehearsal"
BOOTSTRAP = "bootstrap.servers"
_SECURITY = re.compile(r"^(?P<prefix>.*?)(security\.(protocol|providers)|sasl\..+|ssl\..+)$")
_OVERRIDE = re.compile(r"(producer|consumer|admin)\.override\.")
_OUTSIDE = re.compile(
    r"(^|[._-])(urls?|uris?|host[._-]?names?|hosts?|endpoints?|address(es)?|bootstrap|servers?|brokers?([._-]list)?"
    r"|contact[._-]points|file|path|directory|dir|bucket([._-]name)?|connection[._-]string|name[._-]list)$"
)
_ADDRESS = re.compile(r".*://.*|jdbc:.*|[\w.-]*[a-z][\w.-]*:\d+(\s*,\s*[\w.-]+:\d+)*", re.I | re.S)
_SHARED = re.compile(
    r"(^|[._-])((slot|publication|durable|subscription)[._-]name|(server|client|group|connect)[._-]id)$"
)
_REPLICAS = re.compile(r"(topic\.creation\..+\.)?replication\.factor")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LOCATION, _EMITS = "offset-syncs.topic.location", "emit.offset-syncs.enabled"
_EMITS_SINCE = (3, 9)  # 3.5 does not know the setting, and would write
_TAKEN = re.compile(
    r"(key|value|header)\.converter($|\.)|config\.providers($|\.)|plugin\.(path|discovery)$|topic\.creation\.enable$"
    r"|connector\.client\.config\.override\.policy$|offset\.flush\.timeout\.ms$|task\.shutdown\.graceful\.timeout\.ms$"
    r"|(producer|consumer|admin)\."
)
_NEVER_TAKEN = re.compile(
    r"(.*\.)?bootstrap\.servers$"
    r"|(producer|consumer|admin)\.(transactional\.id$|security\.|sasl\.|ssl\.|metric\.reporters$|interceptor\.classes$)"
)


class GivenConnector(Struct, frozen=True):
    """A connector in the form of `PUT /connectors/NAME/config`; its config may have passwords."""

    name: str
    config: Mapping[str, str]
    __repr__ = object.__repr__


class FitConnector(Struct, frozen=True):
    """The config for the sandbox; `brokers` are the names whose value is the sandbox's brokers, once they are there.

    `changed` are sentences about what is not as it was given; `outside` says name by name what else the config names,
    `shared` which names and ids it takes there: a connector of production that has the same is disturbed.
    """

    name: str
    config: Mapping[str, str]
    brokers: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    outside: Mapping[str, str] = {}
    shared: Mapping[str, str] = {}
    __repr__ = object.__repr__  # the config may hold secrets

    def config_at(self, bootstrap_servers: str, login: Mapping[str, str]) -> dict[str, str]:
        """Return the config with the sandbox's brokers, and the client properties that log in to them."""
        logins = {
            f"{prefix}{name}": value
            for each in self.brokers
            for prefix in _client_prefixes(each)
            for name, value in login.items()
        }
        return {**self.config, **dict.fromkeys(self.brokers, bootstrap_servers), **logins}


class FitWorker(Struct, frozen=True):
    """The properties that the workers of the sandbox take over, and the names of those that they don't.

    `outside` says name by name which systems those lead to that are taken over.
    """

    taken: Mapping[str, str] = {}
    left_out: tuple[str, ...] = ()
    outside: Mapping[str, str] = {}
    __repr__ = object.__repr__  # the properties may hold secrets


def requires_exactly_once(config: Mapping[str, str]) -> bool:
    """Decide whether a worker that is not enabled refuses this config."""
    return config.get(SUPPORT_PROPERTY, "").strip().lower() == "required"


def has_single_replicas(config: Mapping[str, str]) -> bool:
    """Decide whether the connector makes topics with one replica."""
    return any(_REPLICAS.fullmatch(name) and value.strip() == "1" for name, value in config.items())


def without_requirement(config: Mapping[str, str]) -> dict[str, str]:
    """Return the config as a worker that is not enabled accepts it."""
    left_out = {SUPPORT_PROPERTY} if requires_exactly_once(config) else set()
    return {name: value for name, value in config.items() if name not in left_out}


def read_connector(text: str, *, source: str) -> GivenConnector:
    """Parse the JSON of a connector, with or without the envelope of name and config; raise InputFileError."""
    try:
        document = json_of(text)
    except ValueError as exc:
        raise InputFileError(f"{source} is no JSON: {exc}", hint=_SHAPE) from exc
    if not isinstance(document, dict):
        raise InputFileError(f"{source} is no JSON object", hint=_SHAPE)
    has_envelope = isinstance(document.get("config"), dict)
    config = document["config"] if has_envelope else document
    told = document.get("name") if has_envelope else config.get("name")
    nested = sorted(name for name, value in config.items() if isinstance(value, dict | list))
    if nested:
        raise InputFileError(f"{source}: {nested[0]} is not one value", hint=_SHAPE)
    values = {name: _text(value) for name, value in config.items() if value is not None}
    if not values.get("connector.class"):
        raise InputFileError(f"{source} has no connector.class", hint=_SHAPE)
    name = str(told or values.get("name") or DEFAULT_NAME)
    return GivenConnector(name, {**values, **({"name": name} if "name" in values else {})})


_SHAPE = 'Give what `PUT /connectors/NAME/config` takes: {"connector.class": …}, or {"name": …, "config": {…}}.'


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def fit_connector(given: GivenConnector, *, brokers: int, kafka_version: tuple[int, int]) -> FitConnector:
    """Fit the connector to a sandbox of so many brokers.

    Raises RefusedError if it would write to the Kafka cluster that it reads.
    """
    _refuse_writing_mirror(given, kafka_version)
    config, changed = dict(given.config), []
    own = [name for name in config if _is_ours(name)]
    overrides = [name for name in own if _OVERRIDE.match(name)]
    replaced = tuple(name for name in own if name not in overrides)
    changed += [f"{name}: left out, the sandbox's brokers are used" for name in overrides]
    changed += [f"{name}: the sandbox's brokers" for name in replaced]
    secured = [name for name in config if _secures(name, own)]
    changed += [f"{name}: left out, the sandbox's brokers have a login of their own" for name in secured]
    for name in (*overrides, *secured):
        del config[name]
    for name, value in config.items():
        if name.endswith("replication.factor") and (java_number(value) or 0) > brokers:
            config[name] = str(brokers)
            changed.append(f"{name}: {brokers}, as there are no more brokers")
    return FitConnector(
        given.name,
        config,
        replaced,
        tuple(changed),
        outside=dict(_outside(config, but=replaced)),
        shared=dict(_shared(config)),
    )


def _is_ours(name: str) -> bool:
    """Decide whether a setting names Kafka brokers that the connector must not use; a mirror may read its source."""
    return (name == BOOTSTRAP or name.endswith(f".{BOOTSTRAP}")) and not name.startswith("source.")


def _client_prefixes(brokers: str) -> tuple[str, ...]:
    """Return the prefixes of the settings of clients that use these brokers.

    Debezium's `schema.history.internal.kafka.bootstrap.servers` are those of its producer and its consumer.
    """
    stem = brokers.removesuffix(BOOTSTRAP)
    own = stem.removesuffix("kafka.")
    return (stem,) if own == stem else (f"{own}producer.", f"{own}consumer.")


def _secures(name: str, own: list[str]) -> bool:
    """Decide whether a setting is part of a login to brokers that are not used here."""
    found = _SECURITY.match(name)
    if found is None:
        return False
    prefix = found["prefix"]
    stems = [each.removesuffix(BOOTSTRAP).removesuffix("kafka.") for each in own]
    return bool(_OVERRIDE.match(prefix)) or any(stem and prefix.startswith(stem) for stem in stems)


def _outside(config: Mapping[str, str], *, but: Container[str] = ()) -> Iterator[tuple[str, str]]:
    """Find settings that name other systems, by their names or by the look of their values."""
    for name, value in config.items():
        words = _HUMP.sub(".", name).lower()
        if name not in but and value.strip() and (_OUTSIDE.search(words) or _ADDRESS.fullmatch(value.strip())):
            yield name, shown_address(name, value)


def _shared(config: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in config.items():
        if _SHARED.search(_HUMP.sub(".", name).lower()) and not _OVERRIDE.match(name):
            yield name, str(shown_value(name, value))


def _refuse_writing_mirror(given: GivenConnector, kafka_version: tuple[int, int]) -> None:
    """Refuse a MirrorMaker that writes to its source: any port of this machine may be a real cluster."""
    config = given.config
    writes = config.get(_LOCATION, "").strip() != "target" and (
        config.get(_EMITS, "").strip().lower() != "false" or kafka_version < _EMITS_SINCE
    )
    if not writes or not is_class(config, MIRROR_SOURCE):
        return
    sources = [value for name, value in config.items() if name.startswith("source.") and name.endswith(BOOTSTRAP)]
    servers = ", ".join(dict.fromkeys(shown_address(BOOTSTRAP, each) for each in sources)) or "its source cluster"
    raise RefusedError(
        f"{given.name} would write its offset-syncs topic to {servers}; nothing was started",
        hint=f"Set {_LOCATION} to target in the file: then the connector only reads there.",
    )


def fit_worker(properties: Properties) -> FitWorker:
    """Select what a worker of the sandbox takes over: converters, config providers, plugins, tuning of its clients.

    Never how one reaches or logs in to a cluster, and nothing of the group, its topics and its REST interface.
    """
    values = properties.values
    taken = {name: value for name, value in values.items() if _TAKEN.match(name) and not _NEVER_TAKEN.match(name)}
    return FitWorker(taken, tuple(sorted(values.keys() - taken.keys())), dict(_outside(taken, but=("plugin.path",))))
