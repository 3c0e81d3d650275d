"""Resolves the settings for access to workers over REST, from the same sources as a Target's other values.

Modules that only a worker's settings need are imported once there are any.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from eosctl.core.workers.access import ConnectAccess
from eosctl.core.workers.proxies import proxies_of
from eosctl.errors import UsageError
from eosctl.profiles.sources import ResolvedValue, Sources

if TYPE_CHECKING:
    from eosctl.core.clients.settings import Secret
    from eosctl.core.workers.config import WorkerConfig
    from eosctl.core.workers.connect_map import ConnectMapping
    from eosctl.core.workers.url import WorkerUrl

_TEXTS = ("ca", "certificate", "key", "username")
_SECRETS = ("key_password", "password", "token")


def connect_map_of(sources: Sources) -> tuple[tuple[ConnectMapping, ...], dict[str, str]]:
    """Return the value of `--connect-map`, and its origin."""
    given = sources.first("connect_map", many=True)
    if given is None:
        return (), {}
    from eosctl.core.workers.connect_map import parse_connect_map

    return parse_connect_map(given.value), {"connect_map": given.origin}


def connect_access_of(
    sources: Sources, workers: Sequence[WorkerConfig], connect_map: Sequence[ConnectMapping]
) -> tuple[tuple[str, ...], ConnectAccess, dict[str, str]]:
    """Return the given URLs, the credentials for workers, and the origins of both."""
    given = sources.first("connect_url", many=True)
    urls = _given_urls(given)
    credentials = _credentials(sources)
    trust = sources.first("connect_trust_discovered", within="connect")
    known = [*urls, *_worker_urls([each.rest_url for each in workers if each.rest_url])]
    access = ConnectAccess(
        **{name: each.value for name, each in credentials.items()},
        trust_discovered=trust is not None and trust.value.lower() not in ("false", "no", "0"),
        named=frozenset(url.origin for url in known),
        named_hosts=frozenset(origin for each in connect_map for origin in each.named_origins()),
        of_urls=_authorizations(urls, connect_map),
        proxies=proxies_of(sources.environ),
    )
    about = {f"connect.{name}": each for name, each in credentials.items()}
    about |= {"connect.trust_discovered": trust} if trust else {}
    about |= {"connect_url": given} if given else {}
    return tuple(url.text for url in urls), access, {name: each.origin for name, each in about.items()}


def _given_urls(given: ResolvedValue | None) -> tuple[WorkerUrl, ...]:
    """Return the URLs that were named; raise UsageError for a password in one on the command line."""
    urls = _worker_urls(given.value if given else ())
    if given is not None and given.origin == "flag" and any(url.authorization for url in urls):
        raise UsageError(
            "a password on the command line can be read by everyone on this machine",
            hint="Use --connect-username with --connect-password-file, or $EOSCTL_CONNECT_URL.",
        )
    return urls


def _credentials(sources: Sources) -> dict[str, ResolvedValue]:
    """Return the given credentials, checked; raise UsageError, and RefusedError for a key that others can read."""
    texts = {name: sources.first(f"connect_{name}", within="connect") for name in _TEXTS}
    secrets = {name: sources.secret(f"connect_{name}", within="connect") for name in _SECRETS}
    credentials = {name: each for name, each in (texts | secrets).items() if each is not None}
    if "token" in credentials:
        credentials["token"] = _checked_token(credentials["token"])
    _check_access(credentials)
    private = credentials.get("key") or credentials.get("certificate")
    if private is not None:
        sources.files.require_private(private.value, "a private key")
    return credentials


def _checked_token(token: ResolvedValue) -> ResolvedValue:
    """Raise InputFileError for a token that no header can hold, as Python's own error would show it."""
    from eosctl.core.clients.settings import Secret
    from eosctl.core.clients.tokens import checked_token

    where = f"the token for Connect's REST interface ({token.origin})"
    return ResolvedValue(Secret(checked_token(token.value.reveal(), where)), token.origin)


def _worker_urls(given: Collection[str]) -> tuple[WorkerUrl, ...]:
    if not given:
        return ()
    from eosctl.core.workers.url import parse_worker_url

    return tuple(map(parse_worker_url, given))


def _authorizations(urls: Collection[WorkerUrl], connect_map: Sequence[ConnectMapping]) -> dict[str, Secret]:
    """Return the credentials in URLs, by the origins that these name and lead to."""
    carried = [(url, url.authorization) for url in urls if url.authorization is not None]
    if not carried:
        return {}
    from eosctl.core.workers.connect_map import reachable_url

    return {
        where.origin: authorization
        for url, authorization in carried
        for where in _worker_urls([url.text, reachable_url(url.text, connect_map)])
    }


def _check_access(credentials: Mapping[str, ResolvedValue]) -> None:
    token, password = credentials.get("token"), credentials.get("password")
    if token is not None and password is not None:
        raise UsageError(f"Connect gets a token ({token.origin}) and a password ({password.origin}); give one of them")
    if (password is None) != ("username" not in credentials) and token is None:
        missing = "password (--connect-password-file)" if password is None else "username (--connect-username)"
        raise UsageError(f"the user of Connect's REST interface has no {missing}")
    if "key" in credentials and "certificate" not in credentials:
        raise UsageError("a key for Connect's REST interface needs its certificate (--connect-certificate)")
