"""Which brokers do not answer: all are asked for their metadata side by side, so that each costs the same wait."""

from __future__ import annotations

from collections.abc import Mapping

from eosctl.deadline import Deadline
from eosctl.errors import EosctlError
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.topics.stream import Address
from eosctl.wire.cluster_messages import METADATA, MetadataRequest

_PARALLEL_BROKERS = 32


def silent_among(cluster: Cluster, brokers: Mapping[int, Address], *, deadline: Deadline) -> dict[int, EosctlError]:
    """Broker id -> why it did not answer by `deadline`."""
    from concurrent.futures import ThreadPoolExecutor

    def ask(address: Address) -> EosctlError | None:
        try:
            with cluster.within(deadline):
                cluster.ask(address, METADATA, MetadataRequest((), allow_auto_topic_creation=False))
        except EosctlError as exc:
            return exc
        return None

    with ThreadPoolExecutor(_PARALLEL_BROKERS) as pool:
        try:
            answers = dict(zip(brokers, pool.map(ask, brokers.values()), strict=True))
        except BaseException:
            cluster.abort()  # wakes those that wait
            raise
    return {broker: failure for broker, failure in answers.items() if failure is not None}
