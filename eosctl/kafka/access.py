"""The permission that a request needs, so that librdkafka's bare "authorization failed" can name it."""

from __future__ import annotations

from msgspec import Struct

from eosctl.core.acls.lines import grant_hint
from eosctl.core.clients.settings import ClientSettings


class Access(Struct, frozen=True):
    """The permission for an `operation` (READ) on a resource.

    `resource_type` is Topic, TransactionalId, Group or Cluster. `settings` are those of the client that lacks it.
    """

    operation: str
    resource_type: str
    name: str
    settings: ClientSettings
    __repr__ = object.__repr__  # the settings may hold secrets

    def __str__(self) -> str:
        return f"{self.operation} on {self.resource_type} {self.name}"

    def hint(self) -> str:
        """Return the kafka-acls line that grants it."""
        return grant_hint(self.operation, self.resource_type, [self.name], settings=self.settings)
