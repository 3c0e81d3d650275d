"""Authentication to Connect workers over REST, and which of them may receive secrets: pure, it opens no file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from eosctl.core.clients.settings import Secret
from eosctl.core.workers.proxies import Proxies
from eosctl.errors import RefusedError
from eosctl.foreign import shell_word

if TYPE_CHECKING:
    from eosctl.core.workers.url import WorkerUrl

SIGNATURE = "a signature of the group's session key"
CONNECTOR_CONFIG = "the connector's config"


class ConnectAccess(Struct, frozen=True):
    """Authorities to trust, a client certificate (PEM files), and a password or a bearer token.

    Certificate, password and token are sent to the origins (`https://host:port`) in `named`, which the user named, and
    to all ports of those in `named_hosts` (`https://host`), but not to origins that only a group's metadata reports,
    unless `trust_discovered`; the same applies to everything that `require_trust` guards. `of_urls` has the
    Authorization that URLs themselves carried, by origin.
    """

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    key_password: Secret | None = None
    username: str | None = None
    password: Secret | None = None
    token: Secret | None = None
    trust_discovered: bool = False
    named: frozenset[str] = frozenset()
    named_hosts: frozenset[str] = frozenset()
    of_urls: Mapping[str, Secret] = {}
    proxies: Proxies = field(default_factory=Proxies)

    @property
    def has_credentials(self) -> bool:
        """Whether there is anything that must not go to just anyone."""
        return any((self.certificate, self.password, self.token))

    def require_trust(self, url: str, what: str) -> None:
        """Raise RefusedError unless the worker may receive `what`: any member of the group can advertise any URL."""
        from eosctl.core.workers.url import parse_worker_url

        if not self.trusts(parse_worker_url(url)):
            raise RefusedError(
                f"the worker at {url} is known from the group only, and may not have {what}; nothing was sent",
                hint=f"If it is yours, name it: -u {shell_word(url)}. --connect-trust-discovered trusts every member.",
            )

    def trusts(self, url: WorkerUrl) -> bool:
        """Return whether secrets may be sent there."""
        is_named = url.origin in self.named or url.origin.rpartition(":")[0] in self.named_hosts
        return self.trust_discovered or is_named

    def authorization(self, url: WorkerUrl) -> Secret | None:
        """Return the value of the Authorization header for `url`, or None."""
        own = url.authorization or self.of_urls.get(url.origin)
        if own is not None or not self.trusts(url):
            return own
        if self.token is not None:
            return Secret(f"Bearer {self.token.reveal()}")
        if self.password is not None:
            from eosctl.core.workers.url import basic_authorization

            return basic_authorization(self.username or "", self.password.reveal())
        return None
