"""Connectors whose config names Kafka brokers of its own: how to reach them, as far as the config shows. Pure.

Anybody who may create connectors can write such a config. So eosctl sends none of its own credentials there, opens no
file of this machine for it, and runs no command in it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from msgspec import Struct

from eosctl.core.clients.properties import client_from_properties
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.java.lists import split_list
from eosctl.core.java.properties import PROVIDER, Properties
from eosctl.errors import EosctlError

CLUSTER_PROPERTY = "producer.override.bootstrap.servers"
_PRODUCER = "producer.override."
_SOURCE = "source.cluster."
_PREFIXES = ("consumer.override.", _PRODUCER)  # the first that names brokers reads the offsets
_TAKEN = {
    "bootstrap.servers", "security.protocol", "sasl.mechanism", "sasl.jaas.config", "ssl.truststore.type",
    "ssl.truststore.certificates", "ssl.keystore.type", "ssl.keystore.certificate.chain", "ssl.keystore.key",
    "ssl.key.password", "ssl.endpoint.identification.algorithm", "request.timeout.ms", "client.dns.lookup",
}  # fmt: skip
_MATTERS = re.compile(r"bootstrap\.servers$|security\.|sasl\.|ssl\.")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class OwnBrokers(Struct, frozen=True):
    """The brokers as the config spells them; `settings` None means that eosctl can't connect to them.

    `why_not` is the reason, as the end of a sentence.
    """

    servers: str
    settings: ClientSettings | None = None
    why_not: str = ""
    __repr__ = object.__repr__  # the settings may hold secrets


def own_brokers(config: Mapping[str, str], *, here: Collection[str]) -> OwnBrokers | None:
    """Return the brokers of a connector's producer; None if the config names none, or only those of `here`.

    Its offsets are read with the same settings.
    """
    prefix = next((prefix for prefix in _PREFIXES if config.get(f"{prefix}bootstrap.servers")), _PRODUCER)
    return _brokers(config, prefix, here=here)


def brokers_of_ids(config: Mapping[str, str], *, here: Collection[str]) -> OwnBrokers | None:
    """Return the brokers of a connector's producer with the producer's settings; its transactional ids are there."""
    return _brokers(config, _PRODUCER, here=here)


def source_brokers(config: Mapping[str, str], *, here: Collection[str]) -> OwnBrokers | None:
    """Return the brokers that a MirrorSourceConnector copies from."""
    return _brokers(config, _SOURCE, here=here, servers_in=f"{_SOURCE}bootstrap.servers")


def _brokers(
    config: Mapping[str, str], prefix: str, *, here: Collection[str], servers_in: str = CLUSTER_PROPERTY
) -> OwnBrokers | None:
    servers = config.get(servers_in)
    if not servers or set(split_list(servers)) == set(here):
        return None
    values = {name.removeprefix(prefix): value for name, value in config.items() if name.startswith(prefix)}
    values = {name: value for name, value in values.items() if _MATTERS.match(name) or name in _TAKEN}
    why_not = _why_not(values, prefix)
    if why_not:
        return OwnBrokers(servers, why_not=why_not)
    try:
        return OwnBrokers(servers, client_from_properties(Properties("the config", values), warn=False).settings)
    except EosctlError as exc:
        return OwnBrokers(servers, why_not=f"its settings can't be used here: {exc.message}")


def _why_not(values: Mapping[str, str], prefix: str) -> str:
    references = sorted(name for name, value in values.items() if PROVIDER.search(value))
    if references:
        return f"only its worker can resolve {', '.join(prefix + name for name in references)}"
    others = sorted(name for name in values if name not in _TAKEN)
    if values.get("sasl.mechanism", "PLAIN") not in _MECHANISMS:
        others.append("sasl.mechanism")
    if others:
        names = ", ".join(prefix + name for name in others)
        return f"{names} is not taken from a connector's config, as it leads to files and logins of its worker"
    return ""
