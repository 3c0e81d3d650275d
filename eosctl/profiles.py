"""Flags, environment, profile and worker config resolved into one Target."""

from __future__ import annotations

from dataclasses import dataclass

from eosctl.core.client_settings import ClientSettings
from eosctl.errors import UsageError


@dataclass(frozen=True, slots=True)
class Target:
    """Which Kafka cluster and Connect group a command talks to, as far as it was told."""

    client: ClientSettings | None = None
    connect_urls: tuple[str, ...] = ()
    group_id: str | None = None
    config_topic: str = "connect-configs"
    offset_topic: str = "connect-offsets"
    status_topic: str = "connect-status"

    def require_client(self) -> ClientSettings:
        """The Kafka client settings; raises UsageError when no bootstrap server was given."""
        if self.client is None:
            raise UsageError("no Kafka cluster was named", hint="Give -b HOST:PORT, or set EOSCTL_BOOTSTRAP_SERVER.")
        return self.client

    def require_group_id(self) -> str:
        """The Connect group id; raises UsageError when none was given."""
        if self.group_id is None:
            raise UsageError("no Connect group was named", hint="Give -g GROUP_ID, or set EOSCTL_GROUP_ID.")
        return self.group_id
