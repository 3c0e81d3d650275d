"""Finds brokers that do not respond: requests metadata from all of them."""

from __future__ import annotations

from collections.abc import Mapping

from eosctl.deadline import Deadline
from eosctl.errors import EosctlError
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.every_broker import ask_every_broker
from eosctl.kafka.topics.stream import Address
from eosctl.wire.cluster_messages import METADATA, MetadataRequest, MetadataResponse


def silent_among(cluster: Cluster, brokers: Mapping[int, Address], *, deadline: Deadline) -> dict[int, EosctlError]:
    """Map each broker that does not respond by `deadline` to the error."""

    def ask(address: Address) -> MetadataResponse:
        return cluster.ask(address, METADATA, MetadataRequest((), allow_auto_topic_creation=False))

    answers = ask_every_broker(cluster, brokers, ask, deadline=deadline)
    return {broker: answer for broker, answer in answers.items() if isinstance(answer, EosctlError)}
