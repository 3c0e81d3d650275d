"""The features of brokers: their supported levels, and those in use (KIP-584), as ApiVersions reports them."""

from __future__ import annotations

from eosctl.core.versions import BrokerFeatures
from eosctl.errors import EosctlError
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.topics.stream import Address
from eosctl.wire.cluster_messages import API_VERSIONS, ApiVersionsRequest, ApiVersionsResponse


def features_of(cluster: Cluster) -> dict[int, BrokerFeatures]:
    """Return the features of each broker that responds, by node id.

    Raises the last broker's error if none does.
    """
    found: dict[int, BrokerFeatures] = {}
    failure: EosctlError | None = None
    brokers = cluster.metadata().brokers
    for broker in brokers:
        try:
            with cluster.one_of(len(brokers)):
                answer = cluster.ask(Address(broker.host, broker.port), API_VERSIONS, ApiVersionsRequest("eosctl", "1"))
        except EosctlError as error:
            failure = error
        else:
            found[broker.node_id] = _features(answer)
    if failure is not None and not found:
        raise failure
    return found


def _features(answer: ApiVersionsResponse) -> BrokerFeatures:
    return BrokerFeatures(
        {each.name: each.max_version for each in answer.supported_features},
        {each.name: each.max_version_level for each in answer.finalized_features},
    )
