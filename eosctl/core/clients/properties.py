"""Reads Java's client.properties, librdkafka's names, or a Connect worker's file into one ClientSettings. Pure.

It reads no key store and no key file. Settings that neither the native wire nor librdkafka can use are refused, or
named for others to open; settings that do not matter to a command line are dropped; unknown ones become a warning.
Settings that Java's clients accept and with which librdkafka refuses to start are clamped or dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import cast

from msgspec import Struct

from eosctl.core.clients.providers import require_resolved
from eosctl.core.clients.settings import ClientSettings, Secret
from eosctl.core.clients.stores import (
    KINIT_COMMAND,
    TOKEN_COMMAND,
    StoreFile,
    endpoint_stores,
    java_refusals,
    sasl_fields,
    store_files,
)
from eosctl.core.java.keystores import pem_lines
from eosctl.core.java.properties import (
    PROVIDER,
    Properties,
    is_reference,
    split_list,
    whole_number,
    without_references,
)

REQUEST_TIMEOUT = "socket.timeout.ms"
LARGEST_RECORD: Mapping[str, object] = {"message.max.bytes": 1_000_000_000}
"""For producers: the topic limits the size of a record; librdkafka by default refuses one of a million bytes."""
_LARGEST_INT = 2_147_483_647
_BACKOFF, _LONGEST_BACKOFF = "reconnect.backoff.ms", "reconnect.backoff.max.ms"
_BACKOFF_MS, _LONGEST_BACKOFF_MS = 100, 10_000  # librdkafka's defaults


class _Range(Struct, frozen=True):
    """The range that librdkafka 2.16 accepts; a smaller value becomes its default if Java's number means the same."""

    lowest: int
    highest: int
    default_below: bool = False


_RANGES = {
    REQUEST_TIMEOUT: _Range(10, 300_000),
    "socket.send.buffer.bytes": _Range(0, 100_000_000, default_below=True),  # -1 is the system's size, its default too
    "socket.receive.buffer.bytes": _Range(0, 100_000_000, default_below=True),
    "retry.backoff.ms": _Range(1, 300_000),
    _BACKOFF: _Range(0, 3_600_000),
    _LONGEST_BACKOFF: _Range(0, 3_600_000),
    "metadata.max.age.ms": _Range(1, 86_400_000, default_below=True),  # 0 would ask again all the time
    "connections.max.idle.ms": _Range(0, _LARGEST_INT, default_below=True),  # never, for both
    "socket.connection.setup.timeout.ms": _Range(1000, _LARGEST_INT),
}
_JAVA_ONLY = {("client.dns.lookup", "default")}
_CHOICES = {
    "client.dns.lookup": ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    "broker.address.family": ("any", "v4", "v6"),
    "socket.keepalive.enable": ("true", "t", "1", "false", "f", "0"),
}
"""The values that librdkafka accepts, in any case of letters."""
_BEGINS_WITH_NUMBER = re.compile(r"[+-]?[0-9]")
"""What librdkafka takes for a number: 0x64 is 100, and what follows a number (100ms) counts for nothing."""


def fitted(given: Mapping[str, str]) -> dict[str, str]:
    """Return `given` (librdkafka's names, Java's values) fitted to the values with which librdkafka starts.

    A value out of range becomes the nearest one in range, or is dropped. Others stay, for librdkafka to refuse.
    """
    taken = {name: _taken(name, value) for name, value in given.items()}
    values = {name: value for name, value in taken.items() if value is not None}
    numbers = {name: int(value) for name, value in values.items() if name in _RANGES and _is_number(value)}
    backoff_ms = numbers.get(_BACKOFF, _BACKOFF_MS)
    longest_ms = numbers.get(_LONGEST_BACKOFF, max(_LONGEST_BACKOFF_MS, backoff_ms))
    if longest_ms > _LONGEST_BACKOFF_MS:
        values[_LONGEST_BACKOFF] = str(longest_ms)
    if backoff_ms > longest_ms:
        values[_BACKOFF] = str(longest_ms)
    return values


def _taken(name: str, value: str) -> str | None:
    limits = _RANGES.get(name)
    if (name, value) in _JAVA_ONLY:
        return None
    if limits is None or not _is_number(value):
        return value
    if int(value) < limits.lowest and limits.default_below:
        return None
    return str(min(max(int(value), limits.lowest), limits.highest))


def _is_number(value: str) -> bool:
    return whole_number(value.removeprefix("-")) is not None


_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_REQUEST_TIMEOUT_MS = 30_000  # Java's default
# our field -> the names it goes by, Java's first; the first one present wins
_TEXT_FIELDS = {
    "sasl_username": ("sasl.username",),
    "oauth_client_id": ("sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.id"),
    "oauth_scope": ("sasl.oauthbearer.scope",),
    "oauth_token_command": (TOKEN_COMMAND,),
    "oauth_ca_location": ("https.ca.location",),
    "oauth_ca_pem": ("https.ca.pem",),
    "ssl_ca_location": ("ssl.ca.location",),
    "ssl_ca_pem": ("ssl.truststore.certificates", "ssl.ca.pem"),
    "ssl_certificate_location": ("ssl.certificate.location",),
    "ssl_certificate_pem": ("ssl.keystore.certificate.chain", "ssl.certificate.pem"),
    "ssl_key_location": ("ssl.key.location",),
    "client_id": ("client.id",),
}
_SECRET_FIELDS = {
    "sasl_password": ("sasl.password",),
    "oauth_token": ("sasl.oauthbearer.token",),
    "oauth_client_secret": ("sasl.oauthbearer.client.credentials.client.secret", "sasl.oauthbearer.client.secret"),
    "ssl_key_pem": ("ssl.keystore.key", "ssl.key.pem"),
    "ssl_key_password": ("ssl.key.password",),
}
_PEM_FIELDS = {"oauth_ca_pem", "ssl_ca_pem", "ssl_certificate_pem", "ssl_key_pem"}
SECRET_NAMES = frozenset(
    {name for names in _SECRET_FIELDS.values() for name in names}
    | {"sasl.jaas.config", "ssl.keystore.password", "ssl.truststore.password"}
)
_STORE_SETTINGS = [
    f"ssl.{store}.{what}" for store in ("truststore", "keystore") for what in ("location", "type", "password")
]
_READ_ELSEWHERE = {
    "bootstrap.servers", "security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.jaas.config",
    "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.extensions", "request.timeout.ms", "socket.timeout.ms",
    "ssl.endpoint.identification.algorithm",
    *_STORE_SETTINGS,
}  # fmt: skip
# passed on to librdkafka: Java's name -> librdkafka's
_PASSED_ON = {
    name: name
    for name in (
        "client.dns.lookup", "retry.backoff.ms", "reconnect.backoff.ms", "reconnect.backoff.max.ms",
        "metadata.max.age.ms", "connections.max.idle.ms", "socket.connection.setup.timeout.ms",
        "socket.keepalive.enable", "broker.address.family", "sasl.kerberos.service.name", "sasl.kerberos.principal",
        "sasl.kerberos.keytab", KINIT_COMMAND, "socket.send.buffer.bytes", "socket.receive.buffer.bytes",
    )
} | {
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
}  # fmt: skip
_TOKEN_SOURCES = ("sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.extensions")
_IMMATERIAL = re.compile(
    r"(key|value)\.(de)?serializer|interceptor\.classes|metric(s|\.reporters).*|auto\.include\.jmx\.reporter"
    r"|default\.api\.timeout\.ms|group\.id|acks|retries|linger\.ms|batch\.size|buffer\.memory|max\.block\.ms"
    r"|enable\.(idempotence|auto\.commit|metrics\.push)|auto\.offset\.reset|isolation\.level|delivery\.timeout\.ms"
    r"|compression\.type|partitioner\..*|security\.providers|sasl\.(login|client)\.callback\.handler\.class"
    r"|sasl\.oauthbearer\.method|ssl\.(protocol|provider|enabled\.protocols|(trust|key)manager\.algorithm)"
)
_SECRET_OPTION = re.compile(r"(password|secret|access\.token|refresh\.token|assertion)\w*\s*=", re.IGNORECASE)


class ClientProperties(Struct, frozen=True):
    """The contents of a settings file: the settings (bootstrap servers may be empty), and what has no effect here.

    `notes` report the settings for which librdkafka gets another value; they are harmless, and for verbose output.
    `stores` are still to be opened: until then the settings name their files as if they were PEM. `java_refusals` are
    settings that eosctl takes, and with which Java's clients don't start.
    """

    settings: ClientSettings
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    stores: tuple[StoreFile, ...] = ()
    java_refusals: tuple[str, ...] = ()


def client_from_properties(properties: Properties, *, warn: bool = True) -> ClientProperties:
    """Read ClientSettings from names and values of either kind.

    `warn` is off for files that hold more than a client.
    """
    values = {key: value.strip() for key, value in properties.values.items()}
    fields: dict[str, object] = {}
    chosen = {
        name: next((key for key in keys if values.get(key)), None)
        for name, keys in (_TEXT_FIELDS | _SECRET_FIELDS).items()
    }
    protocol = _protocol(properties)
    login = ["sasl.jaas.config", *_TOKEN_SOURCES] if protocol.startswith("SASL") else []
    stores = _STORE_SETTINGS if protocol.endswith("SSL") else []
    used = [key for key in chosen.values() if key and _is_used(key, protocol)]
    require_resolved(properties, [*used, *login, *stores])
    _require_sound(properties)
    for name, key in chosen.items():
        if key is not None and not is_reference(values[key]):
            value = values[key]
            value = pem_lines(value) if name in _PEM_FIELDS else value
            fields[name] = Secret(value) if name in _SECRET_FIELDS else value
    fields["bootstrap_servers"] = split_list(values.get("bootstrap.servers", ""))
    fields["security_protocol"] = protocol
    fields["request_timeout_ms"] = _timeout_ms(properties)
    if protocol.startswith("SASL"):
        fields |= sasl_fields(properties, fields)
    if protocol.endswith("SSL"):
        fields |= _ssl_fields(properties)
    warnings = tuple(_warnings(properties)) if warn else ()
    fields["extra"] = _passed_on(properties) | cast(dict[str, str], fields.get("extra", {}))
    settings = ClientSettings(**fields)  # type: ignore[arg-type]  # the tables hold its fields
    files = [*store_files(properties)] if protocol.endswith("SSL") else []
    files += endpoint_stores(properties) if settings.oauth_token_endpoint_url else []
    return ClientProperties(
        settings, warnings, tuple(_notes(properties)), tuple(files), tuple(java_refusals(properties))
    )


def _is_used(key: str, protocol: str) -> bool:
    """Decide whether a client of this security protocol reads the setting."""
    if key.startswith("ssl."):
        return protocol.endswith("SSL")
    return protocol.startswith("SASL") or not key.startswith(("sasl.", "https."))


def secrets_in(properties: Properties) -> list[str]:
    """Return the names of the properties that hold a secret.

    They are those of a client, or of a Connect worker and its clients and listeners. References that only a worker can
    resolve (`${file:…}`) are no secrets, nor is a JAAS line without a password.
    """
    return [name for name, value in properties.values.items() if _holds_secret(name, value.strip())]


def _holds_secret(name: str, value: str) -> bool:
    if not value or (PROVIDER.fullmatch(value) and not _SECRET_OPTION.search(value)):
        return False
    if name.endswith("sasl.jaas.config"):
        return any(_SECRET_OPTION.search(part) for part in without_references(value).split())
    return name.endswith((".password", ".secret", *(SECRET_NAMES - {"sasl.jaas.config"})))


def _require_sound(properties: Properties) -> None:
    """Raise InputFileError for a value that librdkafka refuses: what goes over eosctl's own wire does not use it."""
    for key, name in _PASSED_ON.items():
        value = properties.values.get(key, "").strip()
        if key not in properties.values or is_reference(value) or (name, value) in _JAVA_ONLY:
            continue
        choices = _CHOICES.get(name)
        if choices is not None and value.lower() not in choices:
            raise properties.error(key, f"{value or 'an empty value'} is none of {', '.join(choices)}")
        if name in _RANGES and not _BEGINS_WITH_NUMBER.match(value):
            raise properties.error(key, f"{value or 'an empty value'} is not a number")


def _passed_on(properties: Properties) -> dict[str, str]:
    return {_PASSED_ON[key]: value.strip() for key, value in properties.values.items() if key in _PASSED_ON}


def _notes(properties: Properties) -> Iterator[str]:
    """Yield a line for each setting for which librdkafka gets another value, or none."""
    names = _PASSED_ON | {"request.timeout.ms": REQUEST_TIMEOUT, REQUEST_TIMEOUT: REQUEST_TIMEOUT}
    given = {names[key]: (key, value.strip()) for key, value in properties.values.items() if key in names}
    taken = fitted({name: value for name, (_, value) in given.items()})
    for name, (key, value) in given.items():
        if taken.get(name) != value:
            instead = taken.get(name, "its default")
            yield f"{properties.place(key)}: {key}={value}: librdkafka does not take it, and uses {instead}"


def _protocol(properties: Properties) -> str:
    protocol = properties.values.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in _PROTOCOLS:
        raise properties.error("security.protocol", f"{protocol} is none of {', '.join(_PROTOCOLS)}")
    return protocol


def _timeout_ms(properties: Properties) -> int:
    """Read the request timeout; Java's request.timeout.ms is librdkafka's socket.timeout.ms."""
    for key in ("request.timeout.ms", "socket.timeout.ms"):
        if key in properties.values:
            value = properties.values[key].strip()
            timeout_ms = whole_number(value)
            if not timeout_ms:
                raise properties.error(key, f"{value} is not a number of milliseconds")
            return timeout_ms
    return _REQUEST_TIMEOUT_MS


def _ssl_fields(properties: Properties) -> dict[str, object]:
    values = properties.values
    algorithm = values.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    fields: dict[str, object] = {"ssl_check_hostname": algorithm not in ("", "none")}
    for store, names in (
        ("truststore", ("ssl_ca_location",)),
        ("keystore", ("ssl_certificate_location", "ssl_key_location")),
    ):
        location = values.get(f"ssl.{store}.location", "").strip()
        if location:
            fields |= dict.fromkeys(names, location)
    return fields


def _warnings(properties: Properties) -> list[str]:
    named = {name for names in (_TEXT_FIELDS | _SECRET_FIELDS).values() for name in names}
    known = named | _READ_ELSEWHERE | set(_PASSED_ON)
    return [
        f"{properties.place(key)}: {key} has no effect here"
        for key in properties.values
        if key not in known and not _IMMATERIAL.fullmatch(key)
    ]
