"""What the user gave, made fit for a sandbox: none of it may write to a real Kafka cluster. Pure."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from eosctl.core.clients.hidden_secrets import shown_value
from eosctl.core.java.lists import split_list
from eosctl.core.java.properties import Properties
from eosctl.errors import InputFileError, RefusedError

DEFAULT_NAME = "rehearsal"
BOOTSTRAP = "bootstrap.servers"
_SECURITY = re.compile(r"^(?P<prefix>.*?)(security\.(protocol|providers)|sasl\..+|ssl\..+)$")
_OVERRIDE = re.compile(r"(producer|consumer|admin)\.override\.")
_OUTSIDE = re.compile(
    r"(^|[._-])(urls?|uris?|hostname|hosts?|endpoints?|address(es)?|servers|contact[._-]points|file|path|directory|dir"
    r"|bucket([._-]name)?|connection[._-]string)$"
)
_TAKEN = re.compile(
    r"(key|value|header)\.converter($|\.)|config\.providers($|\.)|plugin\.(path|discovery)$|topic\.creation\.enable$"
    r"|connector\.client\.config\.override\.policy$|offset\.flush\.timeout\.ms$|task\.shutdown\.graceful\.timeout\.ms$"
    r"|(producer|consumer|admin)\."
)
_NEVER_TAKEN = re.compile(
    r"(producer|consumer|admin)\.(bootstrap\.servers$|transactional\.id$|security\.|sasl\.|ssl\.|metric\.reporters$"
    r"|interceptor\.classes$)"
)


@dataclass(frozen=True, slots=True)
class GivenConnector:
    """A connector as `PUT /connectors/NAME/config` takes it; there may be passwords in the config."""

    name: str
    config: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class FitConnector:
    """The config for the sandbox; `brokers` are the names whose value is the sandbox's brokers, once they are there.

    `changed` are sentences about what is not as it was given; `outside` says name by name what else the config names.
    """

    name: str
    config: Mapping[str, str] = field(repr=False)
    brokers: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    outside: Mapping[str, str] = field(default_factory=dict)

    def config_at(self, bootstrap_servers: str) -> dict[str, str]:
        """The config with the brokers of the sandbox in it."""
        return {**self.config, **dict.fromkeys(self.brokers, bootstrap_servers)}


@dataclass(frozen=True, slots=True)
class FitWorker:
    """The properties that the workers of the sandbox take over, and the names of those that they don't."""

    taken: Mapping[str, str] = field(default_factory=dict, repr=False)
    left_out: tuple[str, ...] = ()


def read_connector(text: str, *, source: str) -> GivenConnector:
    """The JSON of a connector, with or without the envelope of name and config; raises InputFileError."""
    try:
        document = json.loads(text)
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


def fit_connector(given: GivenConnector, *, brokers: int) -> FitConnector:
    """The connector as it runs in a sandbox of so many brokers.

    Raises RefusedError where it would write to a Kafka cluster that is not on this machine.
    """
    _refuse_writing_mirror(given)
    config, changed = dict(given.config), []
    own = [name for name in config if _is_ours(name)]
    overrides = [name for name in own if _OVERRIDE.match(name)]
    replaced = tuple(name for name in own if name not in overrides)
    changed += [f"{name}: left out, the sandbox's brokers are used" for name in overrides]
    changed += [f"{name}: the sandbox's brokers" for name in replaced]
    secured = [name for name in config if _secures(name, own)]
    changed += [f"{name}: left out, the sandbox's brokers need no login" for name in secured]
    for name in (*overrides, *secured):
        del config[name]
    for name, value in config.items():
        if name.endswith("replication.factor") and value.strip().isdigit() and int(value) > brokers:
            config[name] = str(brokers)
            changed.append(f"{name}: {brokers}, as there are no more brokers")
    outside = dict(_outside(config, but=replaced))
    return FitConnector(given.name, config, replaced, tuple(changed), outside)


def _is_ours(name: str) -> bool:
    """Whether a setting names Kafka brokers that the connector must not go to; a mirror's source is what it reads."""
    return (name == BOOTSTRAP or name.endswith(f".{BOOTSTRAP}")) and not name.startswith("source.")


def _secures(name: str, own: list[str]) -> bool:
    """Whether a setting is how one logs in to brokers that are not used here."""
    found = _SECURITY.match(name)
    if found is None:
        return False
    prefix = found["prefix"]
    stems = [each.removesuffix(BOOTSTRAP).removesuffix("kafka.") for each in own]
    return bool(_OVERRIDE.match(prefix)) or any(stem and prefix.startswith(stem) for stem in stems)


def _outside(config: Mapping[str, str], *, but: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for name, value in config.items():
        if _OUTSIDE.search(name) and name not in but and value.strip():
            shown = str(shown_value(name, value))
            kept = re.split(r"[?;]", shown, maxsplit=1)[0]  # behind it there may be a password
            yield name, kept if kept == shown else f"{kept}…"


def _refuse_writing_mirror(given: GivenConnector) -> None:
    config = given.config
    if not config["connector.class"].endswith("MirrorSourceConnector"):
        return
    servers = split_list(config.get(f"source.cluster.{BOOTSTRAP}", ""))
    elsewhere = [server for server in servers if not _is_here(server)]
    writes = (
        config.get("offset-syncs.topic.location", "source") == "source"
        and config.get("emit.offset-syncs.enabled", "true").lower() != "false"
    )
    if elsewhere and writes:
        raise RefusedError(
            f"{given.name} would write its offset-syncs topic to {', '.join(elsewhere)}, which is no sandbox; nothing "
            "was started",
            hint="Set offset-syncs.topic.location to target in the file, or emit.offset-syncs.enabled to false: then "
            "the connector only reads there.",
        )


def _is_here(server: str) -> bool:
    host = server.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def fit_worker(properties: Properties) -> FitWorker:
    """What a worker of the sandbox takes over: converters, config providers, plugins, tuning of its clients.

    Never how one reaches or logs in to a cluster, and nothing of the group, its topics and its REST interface.
    """
    values = properties.values
    taken = {name: value for name, value in values.items() if _TAKEN.match(name) and not _NEVER_TAKEN.match(name)}
    return FitWorker(taken, tuple(sorted(values.keys() - taken.keys())))
