"""Converts Java key and trust stores to PEM, which both kinds of Kafka client accept; opened content stays in memory.

The content determines the format, whatever `ssl.*.type` is, as in Java since version 9.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from eosctl.core.clients.properties import ClientProperties
from eosctl.core.clients.settings import ClientSettings, Secret
from eosctl.core.clients.stores import StoreFile
from eosctl.core.java.jks import MAGIC, decrypt_key, read_jks
from eosctl.core.java.pem import certificates_pem, pem_block
from eosctl.machine.files import NamedFiles

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
