"""confluent-kafka's AdminClient as a connection: every wait has the deadline, every error is ours and has a reason."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from typing import Any, ParamSpec, TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError
from eosctl.kafka.access import Access
from eosctl.kafka.topics.librdkafka import ErrorLog, client_properties, error_of, quiet_logger, translate

_POLL_S = 0.1
_CONNECT_TIMEOUT_S = 20.0
_REFRESH, _ASK_AGAIN_MS = "topic.metadata.refresh.interval.ms", 2_000
"""The interval at which librdkafka refreshes the list of brokers. It sends much to the one broker that is named as the
controller, in KRaft any that seems to live: where that one hangs, another is named when its session is over (9 s), and
librdkafka (2.16) would learn of it after five minutes.
"""
_P = ParamSpec("_P")
_T = TypeVar("_T")


def interruptible(request: Callable[_P, _T]) -> Callable[_P, _T]:
    """Wrap `request` so that a Ctrl-C is a KeyboardInterrupt again.

    confluent-kafka's C code (2.16) can notice the signal and return its futures all the same; Python raises a
    SystemError for that.
    """

    @functools.wraps(request)
    def asked(*args: _P.args, **options: _P.kwargs) -> _T:
        try:
            return request(*args, **options)
        except SystemError as exc:
            if isinstance(exc.__cause__, KeyboardInterrupt):
                raise KeyboardInterrupt from exc
            raise

    return asked


class InterruptibleAdmin(AdminClient):
    """An AdminClient whose requests can be interrupted, as far as this package makes them."""

    create_acls = interruptible(AdminClient.create_acls)
    create_topics = interruptible(AdminClient.create_topics)
    describe_acls = interruptible(AdminClient.describe_acls)
    describe_cluster = interruptible(AdminClient.describe_cluster)
    describe_configs = interruptible(AdminClient.describe_configs)
    describe_topics = interruptible(AdminClient.describe_topics)
    incremental_alter_configs = interruptible(AdminClient.incremental_alter_configs)
    list_groups = interruptible(AdminClient.list_groups)
    list_offsets = interruptible(AdminClient.list_offsets)


class AdminConnection:
    """A connection whose client is made at the first request and kept until `close`."""

    def __init__(self, settings: ClientSettings, *, deadline: Deadline) -> None:
        self._settings, self._deadline = settings, deadline
        self._errors = ErrorLog(deadline.clock.monotonic_s)
        self._client: AdminClient | None = None
        self._cluster_id = ""

    def close(self) -> None:
        """Close the client; a later request opens another."""
        self._client = None

    def cluster_id(self) -> str:
        """Return the Kafka cluster id. Raises UnreachableError or UnauthorizedError with the reason."""
        self.client()
        return self._cluster_id

    def client(self) -> AdminClient:
        """Return the client, after the cluster has responded once."""
        if self._client is None:
            properties = {_REFRESH: _ASK_AGAIN_MS, **client_properties(self._settings), "error_cb": self._errors}
            try:
                client = InterruptibleAdmin(properties, logger=quiet_logger())
            except KafkaException as exc:
                raise translate(error_of(exc), "connecting") from exc
            self._client = client
            try:
                self._cluster_id = self._first_answer(client)
            except BaseException:
                self._client = None
                raise
        return self._client

    def _first_answer(self, client: AdminClient) -> str:
        servers = ",".join(self._settings.bootstrap_servers)
        timeout_s = min(_CONNECT_TIMEOUT_S, max(self._deadline.remaining_s(), 0.001))
        future = client.describe_cluster(request_timeout=timeout_s)
        cluster_id: str = self.result(future, f"connecting to {servers}").cluster_id
        return cluster_id

    def result(self, future: Future[object], doing: str, access: Access | None = None) -> Any:
        """Return the result of `future`; the error of a refusal names the `access` that was missing."""
        self.wait([future], doing)
        try:
            return future.result()
        except KafkaException as exc:
            raise self.translated(exc, doing, access) from exc

    def translated(self, exc: KafkaException, doing: str, access: Access | None) -> EosctlError:
        """Return the most informative error: a refused login that `error_cb` reported, else the exception's own."""
        self._errors.check(doing)
        return translate(error_of(exc), doing, access=access, because=self._errors.reason())

    def wait(self, futures: Collection[Future[object]], doing: str) -> None:
        """Wait for all `futures` while serving librdkafka's callbacks, which have the reason of a failure."""
        self._errors.clear()
        while any(not future.done() for future in futures) and wait_for(futures, timeout=_POLL_S).not_done:
            self._serve_callbacks()
            self._errors.check(doing)
            self._deadline.check(doing)
        self._serve_callbacks()

    def _serve_callbacks(self) -> None:
        if self._client is not None:
            self._client.poll(0)

    def request_timeout_s(self) -> float:
        """Return the time limit of one request: the client's setting, or the rest of the deadline."""
        return max(min(self._settings.request_timeout_ms / 1000, self._deadline.remaining_s()), 0.001)
