"""What was seen of a group before its mode is changed: values only, gathered by `eosctl.ops.upgrade`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eosctl.core.config_topic import ConfigState
from eosctl.core.records import TopicDescription
from eosctl.core.upgrade import Mode, UpgradeWorker

OLDEST_VERSION = (3, 3)
"""The first Kafka release with exactly-once source support."""


@dataclass(frozen=True, slots=True)
class ObservedConnector:
    """A connector as Connect shows it; `support_errors` are those of a validation with exactly-once required.

    `states` are the states of connector and tasks by name (`connector`, `task 0`); `support_errors` None: not asked.
    """

    name: str
    type: str
    config: Mapping[str, str]
    states: Mapping[str, str] = field(default_factory=dict)
    support_errors: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A partition of an internal topic whose last stable offset stays behind its end."""

    topic: str
    partition: int
    since_offset: int


@dataclass(frozen=True, slots=True)
class WorkerFile:
    """A worker's properties file, as given with -w."""

    path: str
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything that was seen of a group; None where it could not be looked at, with the reason in `unseen`."""

    target: Mode
    group_state: str
    workers: tuple[UpgradeWorker, ...]
    config_topic: str
    offset_topic: str
    cluster_ids: Mapping[str, str] = field(default_factory=dict)
    kafka_cluster_id: str | None = None
    topics: Mapping[str, TopicDescription] | None = None
    open_transactions: tuple[OpenTransaction, ...] | None = None
    config_state: ConfigState | None = None
    differing_connectors: tuple[str, ...] | None = None
    connectors: tuple[ObservedConnector, ...] | None = None
    files: tuple[WorkerFile, ...] = ()
    unseen: Mapping[str, str] = field(default_factory=dict)

    def why_unseen(self, what: str) -> str:
        """Why `what` could not be looked at."""
        return self.unseen.get(what, f"{what} could not be looked at")


def parse_version(version: str | None) -> tuple[int, int] | None:
    """Major and minor of a Kafka version such as `4.3.1` or `7.9.0-ccs`; None for anything else."""
    parts = (version or "").split("-")[0].split(".")
    if len(parts) < 2 or not (parts[0].isdecimal() and parts[1].isdecimal()):
        return None
    return int(parts[0]), int(parts[1])
