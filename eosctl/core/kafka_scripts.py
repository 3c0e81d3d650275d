"""Lines of Kafka's own scripts that a person pastes: each says which cluster it is about. Pure."""

from __future__ import annotations

import shlex

from eosctl.core.client_settings import ClientSettings


def kafka_script(name: str, settings: ClientSettings | None) -> list[str]:
    """The words that begin a line: the script and its cluster; a secured one wants the file of an administrator."""
    servers = ",".join(settings.bootstrap_servers) if settings else "HOST:PORT"
    secured = settings is not None and settings.security_protocol != "PLAINTEXT"
    words = [name, "--bootstrap-server", servers]
    return words + (["--command-config", "<admin.properties>"] if secured else [])


def only_compacted(topic: str, settings: ClientSettings | None) -> str:
    """The line after which a topic is compacted, and nothing else."""
    words = ["--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", "cleanup.policy=compact"]
    return f"`{shlex.join([*kafka_script('kafka-configs.sh', settings), *words])}`"
