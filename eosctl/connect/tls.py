"""TLS to Connect workers: the context made from a ConnectAccess. Certificates and host names are always verified."""

from __future__ import annotations

import ssl
from pathlib import Path

from eosctl.core.workers.access import ConnectAccess
from eosctl.errors import InputFileError

_PEM_HINT = "Only PEM is read; openssl pkcs12 -in STORE -nodes -out store.pem converts a PKCS12 store."


def make_rest_context(access: ConnectAccess, *, with_certificate: bool) -> ssl.SSLContext:
    """Make the TLS context of one worker's connections. Raises InputFileError for files that can't be used."""
    context = (
        ssl.create_default_context(cafile=None) if access.ca is None else _context_of(Path(access.ca).expanduser())
    )
    if with_certificate and access.certificate is not None:
        _load_certificate(context, access.certificate, access)
    return context


def _context_of(authorities: Path) -> ssl.SSLContext:
    is_directory = authorities.is_dir()
    try:
        return ssl.create_default_context(
            cafile=None if is_directory else str(authorities), capath=str(authorities) if is_directory else None
        )
    except (OSError, ValueError) as exc:
        raise InputFileError(
            f"can't read certificates of authorities from {authorities}: {exc}", hint=_PEM_HINT
        ) from exc


def _load_certificate(context: ssl.SSLContext, certificate: str, access: ConnectAccess) -> None:
    chain = Path(certificate).expanduser()
    key = Path(access.key).expanduser() if access.key else None
    password = access.key_password.reveal() if access.key_password else ""
    try:
        context.load_cert_chain(chain, key, password=password)  # an empty one: OpenSSL would ask on the terminal
    except (OSError, ValueError) as exc:
        raise InputFileError(
            f"can't load the client certificate {chain}: {exc}",
            hint="Certificate and key must belong together, and an encrypted key needs its password "
            f"(EOSCTL_CONNECT_KEY_PASSWORD). {_PEM_HINT}",
        ) from exc
