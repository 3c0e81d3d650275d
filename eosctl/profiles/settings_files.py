"""Client settings and workers' configs from files and from a profile's `client` section, with Java stores as PEM.

Java key and trust stores are converted to PEM, which both kinds of Kafka client accept; opened content stays in memory.
The content determines the format, whatever `ssl.*.type` is, as in Java since version 9.

The workers' properties files are read again: they are edited during a roll.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.clients.properties import ClientProperties, client_from_properties, secrets_in
from eosctl.core.clients.settings import ClientSettings, Secret
from eosctl.core.clients.stores import KINIT_COMMAND, TOKEN_COMMAND, StoreFile
from eosctl.core.java.keystores import MAGIC, certificates_pem, decrypt_key, pem_block, read_jks
from eosctl.core.java.properties import Properties, parse_properties, split_list
from eosctl.core.workers.config import WorkerConfig, parse_worker_config
from eosctl.machine.files import NamedFiles
from eosctl.profiles.sources import SECRET_SUFFIXES, Sources

if TYPE_CHECKING:
    from cryptography.x509 import Certificate


_DER_SEQUENCE = 0x30


class _Opened(Struct, frozen=True):
    """The content of a store, in DER: `trusted`, Java's trust anchors; `chain` and `key` (PKCS 8) of the first key."""

    trusted: Sequence[bytes]
    chain: Sequence[bytes] = ()
    key: bytes | None = None
    __repr__ = object.__repr__  # the key is not shown


def with_stores(client: ClientProperties, files: NamedFiles) -> ClientSettings:
    """Replace Java stores in the settings by their content; raise InputFileError."""
    settings = client.settings
    for store in client.stores:
        data = files.read(store.location)
        if data.lstrip().startswith(b"-----BEGIN"):
            continue  # PEM in spite of its name: used in place
        try:
            opened = _open(data, store)
        except ValueError as exc:
            raise store.error(str(exc)) from exc
        settings = _with_trust(settings, opened, store) if store.holds_trust else _with_key(settings, opened, store)
    return settings


def _with_trust(settings: ClientSettings, opened: _Opened, store: StoreFile) -> ClientSettings:
    if not opened.trusted:
        raise store.error("it holds no certificate")
    pem = certificates_pem(opened.trusted)
    if store.of_endpoint:
        return replace(settings, oauth_ca_location=None, oauth_ca_pem=pem)
    return replace(settings, ssl_ca_location=None, ssl_ca_pem=pem)


def _with_key(settings: ClientSettings, opened: _Opened, store: StoreFile) -> ClientSettings:
    if opened.key is None:
        raise store.error("it holds no private key")
    key = pem_block("PRIVATE KEY", base64.b64encode(opened.key).decode())
    return replace(
        settings,
        ssl_certificate_location=None,
        ssl_key_location=None,
        ssl_key_password=None,
        ssl_certificate_pem=certificates_pem(opened.chain),
        ssl_key_pem=Secret(key),
    )


def _open(data: bytes, store: StoreFile) -> _Opened:
    """Open a store; raise ValueError with the reason, without passwords."""
    password = store.password.reveal() if store.password else None
    if data.startswith(MAGIC):
        return _open_jks(data, store, password)
    if data[:1] == bytes([_DER_SEQUENCE]):
        return _open_pkcs12(data, password)
    raise ValueError("it is neither a JKS nor a PKCS12 store, nor PEM")


def _open_jks(data: bytes, store: StoreFile, password: str | None) -> _Opened:
    found = read_jks(data, password)
    trusted = [*found.trusted, *(key.chain[0] for key in found.keys if key.chain)]
    if store.holds_trust or not found.keys:
        return _Opened(trusted)
    key_password = store.key_password or store.password
    if key_password is None:
        raise ValueError(f"its private key needs {store.password_name}")
    return _Opened(trusted, found.keys[0].chain, decrypt_key(found.keys[0], key_password.reveal()))


def _open_pkcs12(data: bytes, password: str | None) -> _Opened:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    try:
        found = load_pkcs12(data, None if password is None else password.encode())
    except ValueError as exc:
        if password is None:
            raise ValueError("a PKCS12 store needs its password") from exc
        raise ValueError("the password is wrong, or the file is damaged") from exc
    others = [each.certificate for each in found.additional_certs]
    chain = _chain(found.cert.certificate, others) if found.cert else []
    trusted = [*chain[:1], *(each for each in others if each not in chain)]
    key = found.key and found.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    return _Opened(_der(trusted), _der(chain), key or None)


def _chain(own: Certificate, others: Sequence[Certificate]) -> list[Certificate]:
    """Return `own` and its issuers, in order; a store may hold other keys' certificates, too."""
    chain = [own]
    while (above := next((each for each in others if each.subject == chain[-1].issuer), None)) not in (None, *chain):
        assert above is not None  # noqa: S101 - the loop ends there
        chain.append(above)
    return chain


def _der(certificates: Sequence[Certificate]) -> list[bytes]:
    from cryptography.hazmat.primitives.serialization import Encoding

    return [each.public_bytes(Encoding.DER) for each in certificates]


def client_of_files(sources: Sources, workers: Sequence[WorkerConfig]) -> tuple[ClientProperties, str]:
    """Return the settings, and their origin: the settings file, the profile's `client`, or the first of `workers`.

    At least one of them is given. Raises InputFileError, and what `require_private` raises.
    """
    file = sources.first("command_config")
    inline = _inline_client(sources)
    if file is not None and (inline is None or file.origin != sources.profile_origin):
        client, origin = client_from_properties(_client_file(sources, file.value)), file.origin
    elif inline is not None:
        text = _client_file(sources, file.value).values if file is not None else {}
        client = client_from_properties(Properties(inline.source, {**text, **inline.values}))
        origin = sources.profile_origin
    else:
        client, origin = workers[0].client(), workers[0].properties.source
    if sources.fetch_secrets and client.stores:
        client = replace(client, settings=with_stores(client, sources.files))
    for path in (client.settings.ssl_key_location, client.settings.oauth_token_file):
        if path is not None and sources.fetch_secrets:
            sources.files.require_private(path, "a secret")
    return client, origin


def worker_of_file(sources: Sources, path: str) -> WorkerConfig:
    """Read a worker's file; raise InputFileError, UsageError, and what `require_private` raises."""
    text = _java_text(sources, path)
    group, servers = sources.first("group_id"), sources.first("bootstrap_server")
    worker = parse_worker_config(
        text,
        source=path,
        group_id=group.value if group else None,
        servers=split_list(servers.value) if servers else (),
    )
    _require_private(sources, path, parse_properties(text, source=path))
    return worker


def _client_file(sources: Sources, path: str) -> Properties:
    properties = parse_properties(_java_text(sources, path), source=path)
    _require_private(sources, path, properties)
    return properties


def _java_text(sources: Sources, path: str) -> str:
    """Read a file as `java.util.Properties.load(InputStream)`, and so every Kafka tool, reads it."""
    return sources.files.read(path).decode("iso-8859-1")


def _require_private(sources: Sources, path: str, properties: Properties) -> None:
    """Require that only its owner can read a file with passwords, or change a file with a command."""
    if secrets := secrets_in(properties):
        sources.files.require_private(path, secrets[0])
    if {TOKEN_COMMAND, KINIT_COMMAND} & properties.values.keys() and sources.fetch_secrets:
        sources.files.require_private(path, "a command that eosctl runs", readable=True)


def _inline_client(sources: Sources) -> Properties | None:
    """Return the profile's `client` settings, with fetched secrets."""
    where = f"{sources.profile_origin}: client"
    settings = sources.section("client")
    if not settings:
        return None
    values: dict[str, str] = {}
    for key, value in settings.items():
        is_secret = key != TOKEN_COMMAND  # which is kept, as it runs repeatedly
        suffix = next((suffix for suffix in SECRET_SUFFIXES if is_secret and key.endswith(suffix)), None)
        name = key.removesuffix(suffix) if suffix else key
        values[name] = sources.fetch(suffix, value, f"{where}: {key}") if suffix else value
    return Properties(where, values)


def with_files(app: App, paths: Sequence[Path]) -> App:
    """Return an App with the current files of workers: those given with -w, and those at `paths`."""
    sources = [config.properties.source for config in app.target.worker_configs]
    unique = dict.fromkeys([*(str(Path(source).expanduser().resolve()) for source in sources),
                            *(str(path.resolve()) for path in paths)])  # fmt: skip
    configs = []
    for source in unique:
        try:
            text = Path(source).read_bytes().decode("iso-8859-1")
        except OSError:
            continue
        servers = app.target.client.bootstrap_servers if app.target.client else ()
        configs.append(parse_worker_config(text, source=source, group_id=app.target.group_id, servers=servers))
    return replace(app, target=replace(app.target, worker_configs=tuple(configs)))
