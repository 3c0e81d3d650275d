"""Connections to a worker or an exporter: direct, or through the proxy that the environment names for its URL.

TLS to Connect workers: the context made from a ConnectAccess. Certificates and host names are always verified.
"""

from __future__ import annotations

import ssl
import warnings
from collections.abc import Callable
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import urllib3

from eosctl.core.workers.access import ConnectAccess
from eosctl.core.workers.proxies import Proxy
from eosctl.core.workers.url import basic_authorization
from eosctl.deadline import Clock, Deadline
from eosctl.errors import InputFileError, UnreachableError, UnsupportedError
from eosctl.machine.answers import response_within
from eosctl.machine.packages import install_hint
from eosctl.machine.resolving import resolve

_DEFAULT_PROXY_PORTS = {"http": 80, "https": 443}
_SOCKS_PORT = 1080
_CONNECTIONS = 16  # to one host: as many questions as anybody asks side by side; urllib3 logs each one above


def open_pool(proxy: Proxy | None, *, clock: Clock, context: ssl.SSLContext | None = None) -> urllib3.PoolManager:
    """Return a pool of connections that do not retry; `context` is for https.

    An answer has the time that is left of the request's timeout, all of it. Raises UnsupportedError for a SOCKS proxy
    where the package for those is missing.
    """
    manager = _manager(proxy, context)
    pools = {scheme: _with_answers(pool, clock) for scheme, pool in manager.pool_classes_by_scheme.items()}
    manager.pool_classes_by_scheme = pools
    return manager


def _with_answers(pool: type[Any], clock: Clock) -> type[Any]:
    """Return a class of pools whose connections, also those to a proxy, read answers within their timeout."""

    def response_class(connection: HTTPConnection) -> Callable[..., HTTPResponse]:
        return response_within(Deadline.after(connection.timeout or 0.0, clock))

    connection = type("TimedConnection", (pool.ConnectionCls,), {"response_class": property(response_class)})
    return type("TimedPool", (pool,), {"ConnectionCls": connection})


def _manager(proxy: Proxy | None, context: ssl.SSLContext | None) -> urllib3.PoolManager:
    if proxy is None:
        return urllib3.PoolManager(retries=False, maxsize=_CONNECTIONS, cert_reqs="CERT_REQUIRED", ssl_context=context)
    if proxy.is_socks:
        return _socks_pool(proxy, context)
    login = proxy.login
    return urllib3.ProxyManager(
        proxy.shown,
        proxy_headers={"proxy-authorization": basic_authorization(*login).reveal()} if login else None,
        retries=False,
        maxsize=_CONNECTIONS,
        cert_reqs="CERT_REQUIRED",
        ssl_context=context,
    )


def _socks_pool(proxy: Proxy, context: ssl.SSLContext | None) -> urllib3.PoolManager:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # urllib3 says there what the error says here
            from urllib3.contrib.socks import SOCKSProxyManager
    except ImportError as exc:
        raise UnsupportedError(
            f"${proxy.variable} names a SOCKS proxy ({proxy.shown}), and the Python package PySocks is not installed",
            hint=install_hint("socks"),
        ) from exc
    user, password = proxy.login or (None, None)
    return SOCKSProxyManager(
        proxy.shown,
        user,
        password,
        retries=False,
        maxsize=_CONNECTIONS,
        cert_reqs="CERT_REQUIRED",
        ssl_context=context,
    )


def resolve_url(url: str, proxy: Proxy | None, deadline: Deadline) -> None:
    """Look up the host of `url` within the deadline, which urllib3's own lookup ignores.

    With a proxy, look up the proxy's host: the proxy looks up the other. Raises OSError where there is no such host,
    and DeadlineError.
    """
    parts = urlsplit(url if proxy is None else proxy.shown)
    try:
        resolve(parts.hostname or "", parts.port or _DEFAULT_PROXY_PORTS.get(parts.scheme, _SOCKS_PORT), deadline)
    except UnreachableError as exc:
        raise OSError(exc.message) from exc


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
