"""The `kafka-acls` line that grants what a broker refused.

A line is printed to be pasted: only what can't be known is a placeholder, quoted so that no shell acts on it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from eosctl.core.client_settings import ClientSettings

_RESOURCE_FLAGS = {"TransactionalId": "--transactional-id", "Topic": "--topic", "Group": "--group"}
_SHOWN = 3


def kafka_acls_line(
    operations: Sequence[str], resource_type: str, name: str = "", *, settings: ClientSettings | None = None
) -> str:
    """One shell line; the principal is the SASL user where there is one.

    `operations` are Kafka's names (`CLUSTER_ACTION`); `resource_type` is TransactionalId, Topic, Group or Cluster
    (`name` empty). A secured listener wants the settings of somebody who may change ACLs.
    """
    servers = ",".join(settings.bootstrap_servers) if settings else "HOST:PORT"
    user = (settings.sasl_username if settings else None) or "<principal>"
    secured = settings is not None and settings.security_protocol != "PLAINTEXT"
    words = ["kafka-acls.sh", "--bootstrap-server", servers]
    words += ["--command-config", "<admin.properties>"] if secured else []
    words += ["--add", "--allow-principal", f"User:{user}"]
    for operation in operations:
        words += ["--operation", operation.title().replace("_", "")]
    words += ["--cluster"] if resource_type == "Cluster" else [_RESOURCE_FLAGS[resource_type], name]
    return shlex.join(words)


def grant_hint(
    operation: str,
    resource_type: str,
    names: Sequence[str],
    *,
    settings: ClientSettings | None = None,
    then: str | None = None,
) -> str:
    """What is missing, and the lines that grant it for the first few of `names`.

    `then` is what the same command would find missing next: granted with it, one paste is enough.
    """
    operations = [operation] if then is None else [operation, then]
    lines = [kafka_acls_line(operations, resource_type, name, settings=settings) for name in names[:_SHOWN]]
    more = [f"... and for {len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    needed = f"{operation} on {resource_type}" + (f" (and then {then})" if then else "")
    return "\n".join([f"Missing: {needed}. Grant it with:", *lines, *more])
