"""Target: the Kafka cluster and the Connect group of a command, and its access to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from eosctl.core.workers.access import ConnectAccess
from eosctl.errors import UsageError

if TYPE_CHECKING:
    from eosctl.core.clients.settings import ClientSettings
    from eosctl.core.workers.config import ConnectMapping, WorkerConfig

DEFAULT_TOPICS = {
    "config_topic": "connect-configs",
    "offset_topic": "connect-offsets",
    "status_topic": "connect-status",
}


class Target(Struct, frozen=True):
    """The cluster, the group and the settings of a command; None and empty where none were given.

    `origins` names the source of each value: `flag`, `env EOSCTL_…`, `profile NAME`, a file, or `default`. `expect`
    holds the values that the profile requires before a write: `kafka_cluster_id`, `group_id`; `ignore` the findings
    (`CODE` or `CODE:SUBJECT`) that it accepts. `connect_map` maps workers' advertised URLs that can't be reached from
    here. `java_refusals` are client settings with which Java's clients would not start. `disagreements` are sentences
    about internal topics for which the workers' files have different names, without another source that decides; then
    the name in most files counts.
    """

    client: ClientSettings | None = None
    connect_urls: tuple[str, ...] = ()
    group_id: str | None = None
    config_topic: str = DEFAULT_TOPICS["config_topic"]
    offset_topic: str = DEFAULT_TOPICS["offset_topic"]
    status_topic: str = DEFAULT_TOPICS["status_topic"]
    worker_configs: tuple[WorkerConfig, ...] = ()
    expect: Mapping[str, str] = {}
    ignore: tuple[str, ...] = ()
    audit_log: str | None = None
    origins: Mapping[str, str] = {}
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    profile: str | None = None
    connect: ConnectAccess = field(default_factory=ConnectAccess)
    connect_map: tuple[ConnectMapping, ...] = ()
    disagreements: tuple[str, ...] = ()
    java_refusals: tuple[str, ...] = ()

    def status_topics(self) -> frozenset[str]:
        """Return the status topics that were named; the default one is the group's if its config topic is the default.

        Otherwise a topic of that name is another group's.
        """
        named = {each.status_topic for each in self.worker_configs if each.status_topic}
        is_named = self.status_topic != DEFAULT_TOPICS["status_topic"]
        if is_named or self.config_topic == DEFAULT_TOPICS["config_topic"]:
            named.add(self.status_topic)
        return frozenset(named)

    def trusts(self, url: str) -> bool:
        """Return whether the worker that is known as `url` may receive secrets.

        It is judged by the URL at which it is reached from here.
        """
        from eosctl.core.workers.config import reachable_url
        from eosctl.core.workers.url import parse_worker_url

        return self.connect.trusts(parse_worker_url(reachable_url(url, self.connect_map)))

    def require_client(self) -> ClientSettings:
        """Return the Kafka client settings; raises UsageError if no bootstrap server was given."""
        if self.client is None:
            raise UsageError("no Kafka cluster was named", hint="Give -b HOST:PORT, or set EOSCTL_BOOTSTRAP_SERVER.")
        return self.client

    def require_agreement(self) -> None:
        """Raise UsageError unless it is certain which internal topics are the group's."""
        if self.disagreements:
            raise UsageError(
                f"{self.disagreements[0]}; nothing was written",
                hint="Name the group's with --config-topic or --offset-topic; `eosctl doctor` says which worker's file "
                "differs.",
            )

    def require_group_id(self) -> str:
        """Return the Connect group id; raises UsageError if none was given."""
        if self.group_id is not None:
            return self.group_id
        hint = "Give -g GROUP_ID, or set EOSCTL_GROUP_ID."
        if self.client is None:
            hint = "Give -b HOST:PORT -g GROUP_ID for the brokers and the workers' group.id, or a profile with -p NAME."
        raise UsageError("no Connect group was named", hint=hint)
