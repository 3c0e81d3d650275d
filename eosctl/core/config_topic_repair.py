"""How a record that no worker can read leaves the config topic: by compaction alone, and the commands that bring it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from shlex import quote

_WHILE_COMPACTING = {"segment.ms": "1000", "min.cleanable.dirty.ratio": "0", "min.compaction.lag.ms": "0"}
_NO_CONNECTOR = ("eosctl-compaction", "{}")
"""A key that every worker reads and passes over; what matters is that something stands behind the other records."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """The config topic to be compacted at once; `config` holds its settings now, empty where they may not be read."""

    topic: str = "connect-configs"
    bootstrap: str = "localhost:9092"
    config: Mapping[str, str] = field(default_factory=dict)

    def commands(self, *, overwrite: str = "") -> str:
        """What to run, in order; `overwrite` puts a readable record of the same key first, where there is none yet."""
        first = f"{overwrite}; " if overwrite else ""
        now = ",".join(f"{name}={value}" for name, value in _WHILE_COMPACTING.items())
        return (
            f"Restart no worker until it is gone: {first}`{self._alter()} --add-config {quote(now)}`, a second later "
            f"`{self.producing(*_NO_CONNECTOR)}`, wait until `eosctl task-counts validate` no longer names it (brokers "
            f"look every log.cleaner.backoff.ms, 15 s), then `{self._set_back()}`."
        )

    def producing(self, key: str, value: str) -> str:
        """The command that writes one record to the topic."""
        return (
            f"printf '%s\\t%s\\n' {quote(key)} {quote(value)} | kafka-console-producer.sh --bootstrap-server "
            f"{quote(self.bootstrap)} --topic {quote(self.topic)} --property parse.key=true"
        )

    def _alter(self) -> str:
        return (
            f"kafka-configs.sh --bootstrap-server {quote(self.bootstrap)} --alter --entity-type topics --entity-name "
            f"{quote(self.topic)}"
        )

    def _set_back(self) -> str:
        """To the values of before; without those, to the brokers' defaults."""
        before = {name: self.config[name] for name in _WHILE_COMPACTING if name in self.config}
        unknown = [name for name in _WHILE_COMPACTING if name not in before]
        command = self._alter()
        if before:
            command += f" --add-config {quote(','.join(f'{name}={value}' for name, value in before.items()))}"
        return command + (f" --delete-config {quote(','.join(unknown))}" if unknown else "")
