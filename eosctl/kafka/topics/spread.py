"""Checks whether every broker knows new topics: the next request may go to any of them.

librdkafka does not let a caller choose the broker for a metadata request, so these are our own.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.errors import UnauthorizedError, UnreachableError, UnsupportedError
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.topics.stream import Address
from eosctl.wire.cluster_messages import METADATA, MetadataRequest, TopicQuery
from eosctl.wire.error_codes import TOPIC_AUTHORIZATION_FAILED

_PATIENCE_MS = 3000
_NO_TELLING = (UnreachableError, UnauthorizedError, UnsupportedError)  # GSSAPI is librdkafka's alone


class TopicSpread:
    """Connects at its first request, to each broker.

    One that is silent for seconds is ignored, as it misleads no client.
    """

    def __init__(self, settings: ClientSettings, *, deadline: Deadline) -> None:
        quick = replace(settings, request_timeout_ms=min(settings.request_timeout_ms, _PATIENCE_MS))
        self._cluster = Cluster(quick, deadline=deadline)

    def close(self) -> None:
        """Close the connections; a later request opens others."""
        self._cluster.close()

    def known_everywhere(self, partitions: Mapping[str, int]) -> bool:
        """Return whether each broker that responds knows that many partitions of each topic, and their leaders."""
        try:
            brokers = self._cluster.metadata().brokers
        except _NO_TELLING:
            return True
        return all(self._known_at(Address(broker.host, broker.port), partitions) for broker in brokers)

    def _known_at(self, broker: Address, partitions: Mapping[str, int]) -> bool:
        queries = tuple(TopicQuery(name=topic) for topic in partitions)
        request = MetadataRequest(queries, allow_auto_topic_creation=False)
        try:
            answer = self._cluster.ask(broker, METADATA, request)
        except _NO_TELLING:
            return True
        return all(
            topic.error_code == TOPIC_AUTHORIZATION_FAILED
            or sum(each.leader_id >= 0 for each in topic.partitions) >= partitions.get(topic.name or "", 0)
            for topic in answer.topics
        )
