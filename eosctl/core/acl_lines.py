"""The `kafka-acls` line that grants what a broker refused."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from eosctl.core.client_settings import ClientSettings

_RESOURCE_FLAGS = {"TransactionalId": "--transactional-id", "Topic": "--topic", "Group": "--group"}
_SHOWN = 3


def kafka_acls_line(
    operation: str, resource_type: str, name: str = "", *, settings: ClientSettings | None = None
) -> str:
    """One shell line; the principal is the SASL user where there is one, else a placeholder.

    `resource_type` is TransactionalId, Topic, Group or Cluster (`name` empty).
    """
    servers = ",".join(settings.bootstrap_servers) if settings else "HOST:PORT"
    user = (settings.sasl_username if settings else None) or "<principal>"
    resource = ["--cluster"] if resource_type == "Cluster" else [_RESOURCE_FLAGS[resource_type], name]
    words = ["kafka-acls.sh", "--bootstrap-server", servers, "--add", "--allow-principal", f"User:{user}"]
    return shlex.join([*words, "--operation", operation.title().replace("_", ""), *resource])


def grant_hint(
    operation: str, resource_type: str, names: Sequence[str], *, settings: ClientSettings | None = None
) -> str:
    """What is missing, and the lines that grant it for the first few of `names`."""
    lines = [kafka_acls_line(operation, resource_type, name, settings=settings) for name in names[:_SHOWN]]
    more = [f"... and for {len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return "\n".join([f"Missing: {operation.upper()} on {resource_type}. Grant it with:", *lines, *more])
