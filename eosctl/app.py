"""App: the environment of one operation, all injected.

It has the target, the clock, the deadline, a listener of events, and connections to Kafka and Connect.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from eosctl.deadline import Clock, Deadline, OnEvent, ignore_events
from eosctl.errors import UsageError
from eosctl.target import Target

if TYPE_CHECKING:
    from eosctl.connect.session import ConnectSession
    from eosctl.core.clients.settings import ClientSettings
    from eosctl.kafka.session import Connections, KafkaSession
    from eosctl.ports import (
        AclClient,
        BatchLog,
        ConnectWorker,
        TopicAdmin,
        TopicClient,
        TopicReader,
        TopicWriter,
        TransactionAdmin,
    )


def open_transactions(app: App) -> TransactionAdmin:
    from eosctl.kafka.native.sasl import is_spoken_natively
    from eosctl.kafka.transactions.admin import NativeTransactionAdmin

    client = app.target.require_client()
    if is_spoken_natively(client):
        connections = app.connections(client)
        return NativeTransactionAdmin(client, deadline=app.deadline, on_event=app.on_event, connections=connections)
    from eosctl.kafka.group_admin import LibrdkafkaGroupAdmin

    return LibrdkafkaGroupAdmin(client, deadline=app.deadline, on_event=app.on_event)


def _open_topics(app: App) -> TopicClient:
    from eosctl.kafka.topics.store import KafkaTopicClient

    client = app.target.require_client()
    return KafkaTopicClient(client, deadline=app.deadline, on_event=app.on_event, connections=app.connections(client))


def _open_batches(app: App) -> BatchLog:
    from eosctl.kafka.batches.log import NativeBatchLog

    client = app.target.require_client()
    return NativeBatchLog(client, deadline=app.deadline, connections=app.connections(client))


def _open_acls(app: App) -> AclClient:
    from eosctl.kafka.acls import KafkaAclClient

    return KafkaAclClient(app.target.require_client(), deadline=app.deadline)


def _open_worker(app: App, url: str) -> ConnectWorker:
    from eosctl.connect.rest import RestConnectWorker

    return RestConnectWorker(url, deadline=app.deadline, access=app.target.connect, session=app.rest)


def _addresses_of(app: App, host: str) -> frozenset[str]:
    from eosctl.connect.signing import addresses_of

    return addresses_of(host, app.deadline)


def _no_profiles(profile: str) -> Target:
    raise UsageError(f"there are no profiles here, so no {profile}")


class App(Struct, frozen=True):
    """The target and the environment of one operation.

    `state_dir` is the directory for backups and journals; `target_of` returns the Target of a profile by its name,
    `addresses_of` the addresses of a host, none where they are unknown. Whoever passes `kafka` and `rest` closes them.
    `open_topic_reader`, where given, opens a client that only reads topics.
    """

    target: Target
    deadline: Deadline
    state_dir: Path
    clock: Clock = field(default_factory=Clock)
    on_event: OnEvent = ignore_events
    open_transactions: Callable[[App], TransactionAdmin] = open_transactions
    open_topics: Callable[[App], TopicClient] = _open_topics
    open_topic_reader: Callable[[App], TopicReader] | None = None
    open_batches: Callable[[App], BatchLog] = _open_batches
    open_worker: Callable[[App, str], ConnectWorker] = _open_worker
    open_acls: Callable[[App], AclClient] = _open_acls
    target_of: Callable[[str], Target] = _no_profiles
    addresses_of: Callable[[App, str], frozenset[str]] = _addresses_of
    kafka: KafkaSession | None = None
    rest: ConnectSession | None = None

    def connections(self, client: ClientSettings) -> Connections | None:
        """Return the connections that the whole command shares; None where each question makes its own."""
        return self.kafka.to(client) if self.kafka is not None else None

    def transactions(self) -> TransactionAdmin:
        """Return a native connection to the target's Kafka cluster."""
        return self.open_transactions(self)

    def topics(self) -> TopicReader:
        """Return a reader of the target's topics."""
        return (self.open_topic_reader or self.open_topics)(self)

    def topic_writer(self) -> TopicWriter:
        """Return a writer of records to the target's topics."""
        return self.open_topics(self)

    def topic_admin(self) -> TopicAdmin:
        """Return a client that creates the target's topics and changes their settings."""
        return self.open_topics(self)

    def batches(self) -> BatchLog:
        """Return a reader of the batches of the target's topics, by their headers."""
        return self.open_batches(self)

    def acls(self) -> AclClient:
        """Return a client for the ACLs of the target's Kafka cluster."""
        return self.open_acls(self)

    def worker(self, url: str) -> ConnectWorker:
        """Return the REST interface of the worker that is known as `url`, at the URL where it is reached from here."""
        from eosctl.core.workers.config import reachable_url

        return self.open_worker(self, reachable_url(url, self.target.connect_map))

    def with_whole_timeout(self) -> App:
        """Return a copy with a deadline that starts now: time that has passed does not count."""
        return replace(self, deadline=Deadline.after(self.deadline.timeout_s, self.clock))

    def elsewhere(self, profile: str) -> App:
        """Return a copy whose target is that of `profile`; raises InputFileError if the profile does not exist."""
        return replace(self, target=self.target_of(profile))
