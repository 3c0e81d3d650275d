"""`--connect-map`: the URLs of workers whose advertised names can't be reached from here. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from msgspec import Struct

from eosctl.core.workers.url import WorkerUrl, parse_worker_url
from eosctl.errors import UsageError

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
