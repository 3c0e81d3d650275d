"""What a broker of the fake cluster answers, API by API."""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from eosctl.core.records import LogDir
from eosctl.wire import cluster_messages as cluster_api
from eosctl.wire import config_messages as configs
from eosctl.wire import error_codes as codes
from eosctl.wire import group_listing_messages as group_listings
from eosctl.wire import group_messages as groups
from eosctl.wire import log_dir_messages as disks
from eosctl.wire import producer_messages as leaders
from eosctl.wire import sasl_messages as sasl_api
from eosctl.wire import transaction_listing_messages as listings
from eosctl.wire import transaction_messages as txn
from tests.fakes import log_answers

if TYPE_CHECKING:
    from tests.fakes.broker import FakeCluster

MECHANISMS = ("PLAIN", "OAUTHBEARER")
STATES = {"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence"}


class Asked(NamedTuple):
    """Who was asked, in which version, and the error code to answer with (NONE: the truth)."""

    cluster: FakeCluster
    node: int
    version: int
    error: int


def _api_versions(asked: Asked, _request: object) -> cluster_api.ApiVersionsResponse:
    state = asked.cluster.state
    answer = _all_offered(asked.error, tuple(asked.cluster.versions.items()))
    left_out = asked.cluster.left_out.get(asked.node, ())
    return answer._replace(
        api_keys=tuple(each for each in answer.api_keys if each.api_key not in left_out),
        supported_features=tuple(cluster_api.SupportedFeature(name, 0, most) for name, most in state.supported.items()),
        finalized_features=tuple(
            cluster_api.FinalizedFeature(name, level, level) for name, level in state.finalized.items()
        ),
    )


_OFFERED_ONLY = {24: (0, 5), 25: (0, 4), 26: (0, 5), 28: (0, 5)}
"""APIs of clients' transactions, by key: a broker offers them (4.3), and eosctl requests none of them."""


@lru_cache(maxsize=128)
def _all_offered(error: int, narrowed: tuple[tuple[str, tuple[int, int]], ...]) -> cluster_api.ApiVersionsResponse:
    from tests.fakes.broker import APIS, offered

    versions = dict(narrowed)
    ranges = {api.key: offered(api, versions) for api in APIS.values()} | _OFFERED_ONLY
    return cluster_api.ApiVersionsResponse(
        error_code=error,
        api_keys=tuple(cluster_api.ApiRange(key, *each) for key, each in ranges.items()),
    )


def _sasl_handshake(asked: Asked, request: sasl_api.SaslHandshakeRequest) -> sasl_api.SaslHandshakeResponse:
    if not asked.cluster.users:
        return sasl_api.SaslHandshakeResponse(codes.ILLEGAL_SASL_STATE)
    known = request.mechanism in MECHANISMS
    return sasl_api.SaslHandshakeResponse(codes.NONE if known else codes.UNSUPPORTED_SASL_MECHANISM, MECHANISMS)


def _sasl_authenticate(asked: Asked, request: sasl_api.SaslAuthenticateRequest) -> sasl_api.SaslAuthenticateResponse:
    users, message = asked.cluster.users, request.auth_bytes
    if message == b"\x01":
        return sasl_api.SaslAuthenticateResponse(codes.SASL_AUTHENTICATION_FAILED, '{"status":"invalid_token"}')
    if message.startswith(b"n,,\x01auth=Bearer "):
        token = message.split(b"\x01")[1].removeprefix(b"auth=Bearer ").decode()
        good = token in users.values()
        lifetime_ms = asked.cluster.session_lifetime_ms if good else 0
        return sasl_api.SaslAuthenticateResponse(
            auth_bytes=b"" if good else b'{"status":"invalid_token"}', session_lifetime_ms=lifetime_ms
        )
    _, name, password = message.split(b"\0")
    if users.get(name.decode()) == password.decode():
        return sasl_api.SaslAuthenticateResponse(session_lifetime_ms=asked.cluster.session_lifetime_ms)
    reason = "Authentication failed: Invalid username or password"
    return sasl_api.SaslAuthenticateResponse(codes.SASL_AUTHENTICATION_FAILED, reason)


def _metadata(asked: Asked, request: cluster_api.MetadataRequest) -> cluster_api.MetadataResponse:
    cluster, state = asked.cluster, asked.cluster.state
    seen = sorted(state.topics.keys() - cluster.deny_topics)  # of all topics the others are left out, without a word
    names = seen if request.topics is None else [topic.name or "" for topic in request.topics]
    return cluster_api.MetadataResponse(
        brokers=tuple(
            cluster_api.Broker(node, *cluster.address(node)) for node in state.nodes if node not in cluster.unnamed
        ),
        cluster_id=state.cluster_id,
        controller_id=state.nodes[0],
        topics=tuple(_topic_metadata(asked, name) for name in names),
    )


def _topic_metadata(asked: Asked, name: str) -> cluster_api.TopicMetadata:
    cluster, state = asked.cluster, asked.cluster.state
    if name in cluster.deny_topics:
        return cluster_api.TopicMetadata(error_code=codes.TOPIC_AUTHORIZATION_FAILED, name=name)
    if name not in state.topics or name in cluster.unaware.get(asked.node, ()):
        return cluster_api.TopicMetadata(error_code=codes.UNKNOWN_TOPIC_OR_PARTITION, name=name)
    partitions = tuple(
        _partition_metadata(state.leader_of(name, index), index) for index in range(len(state.topics[name].partitions))
    )
    topic_id = log_answers.topic_uuid(state.topics[name])
    return cluster_api.TopicMetadata(error_code=codes.NONE, name=name, topic_id=topic_id, partitions=partitions)


def _partition_metadata(leader: int | None, index: int) -> cluster_api.PartitionMetadata:
    if leader is None:
        return cluster_api.PartitionMetadata(codes.LEADER_NOT_AVAILABLE, partition_index=index, leader_id=-1)
    return cluster_api.PartitionMetadata(partition_index=index, leader_id=leader)


def _find_coordinator(asked: Asked, request: cluster_api.FindCoordinatorRequest) -> cluster_api.FindCoordinatorResponse:
    batched = asked.version >= cluster_api.FIND_COORDINATOR_BATCHED_FROM
    found = [_found(asked, key) for key in (request.coordinator_keys if batched else (request.key,))]
    if batched:
        return cluster_api.FindCoordinatorResponse(coordinators=tuple(found))
    _, node, host, port, error, message = found[0]
    return cluster_api.FindCoordinatorResponse(0, error, message, node, host, port)


def _found(asked: Asked, key: str) -> cluster_api.FoundCoordinator:
    error = asked.error
    if key in asked.cluster.deny_describe:
        error = codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if error:
        return cluster_api.FoundCoordinator(key, error_code=error, error_message="")
    node = asked.cluster.state.coordinator(key)
    if node is None:
        return cluster_api.FoundCoordinator(key, error_code=codes.COORDINATOR_NOT_AVAILABLE, error_message="")
    return cluster_api.FoundCoordinator(key, node, *asked.cluster.address(node))


def _refusal(asked: Asked, transactional_id: str, denied: set[str]) -> int:
    """The error of an id at this broker, before its transaction is looked at."""
    if asked.error:
        return asked.error
    if transactional_id in denied:
        return codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    state = asked.cluster.state
    if state.coordinator(transactional_id) != asked.node:
        return codes.NOT_COORDINATOR
    return codes.COORDINATOR_LOAD_IN_PROGRESS if state.is_loading(transactional_id) else codes.NONE


def _init_producer_id(asked: Asked, request: txn.InitProducerIdRequest) -> txn.InitProducerIdResponse:
    transactional_id = request.transactional_id or ""
    error = _refusal(asked, transactional_id, asked.cluster.deny_write)
    if error:
        return txn.InitProducerIdResponse(error_code=error, producer_epoch=-1)
    return txn.InitProducerIdResponse(
        0, *asked.cluster.state.init_producer_id(transactional_id, request.transaction_timeout_ms)
    )


def _describe_transactions(asked: Asked, request: txn.DescribeTransactionsRequest) -> txn.DescribeTransactionsResponse:
    return txn.DescribeTransactionsResponse(
        transaction_states=tuple(_described(asked, name) for name in request.transactional_ids)
    )


def _described(asked: Asked, transactional_id: str) -> txn.DescribedTransaction:
    known = asked.cluster.state.transactions.get(transactional_id)
    error = _refusal(asked, transactional_id, asked.cluster.deny_describe)
    if not error and not transactional_id:
        error = codes.INVALID_REQUEST
    if error or known is None:
        return txn.DescribedTransaction(error or codes.TRANSACTIONAL_ID_NOT_FOUND, transactional_id)
    return txn.DescribedTransaction(
        codes.NONE,
        transactional_id,
        known.state,
        known.timeout_ms,
        known.started_ms,
        known.producer_id,
        known.producer_epoch,
        tuple(txn.TransactionPartitions(topic, indexes) for topic, indexes in _by_topic(known.partitions)),
    )


def _by_topic(partitions: Iterable[tuple[str, int]]) -> list[tuple[str, tuple[int, ...]]]:
    grouped: collections.defaultdict[str, list[int]] = collections.defaultdict(list)
    for topic, index in sorted(partitions):
        grouped[topic].append(index)
    return [(topic, tuple(indexes)) for topic, indexes in grouped.items()]


def _list_transactions(asked: Asked, request: listings.ListTransactionsRequest) -> listings.ListTransactionsResponse:
    state = asked.cluster.state
    now_ms = state.clock.now_ms()
    pattern = re.compile(request.transactional_id_pattern) if request.transactional_id_pattern else None
    kept = [
        listings.ListedTransaction(name, item.producer_id, item.state)
        for name, item in state.transactions.items()
        if state.coordinator(name) == asked.node
        and name not in asked.cluster.deny_describe
        and (not request.state_filters or item.state in request.state_filters)
        and (not request.producer_id_filters or item.producer_id in request.producer_id_filters)
        and (request.duration_filter < 0 or now_ms - item.started_ms > request.duration_filter)
        and (pattern is None or pattern.fullmatch(name))
    ]
    return listings.ListTransactionsResponse(
        error_code=asked.error,
        unknown_state_filters=tuple(name for name in request.state_filters if name not in STATES),
        transaction_states=() if asked.error else tuple(kept),
    )


def _describe_producers(asked: Asked, request: leaders.DescribeProducersRequest) -> leaders.DescribeProducersResponse:
    return leaders.DescribeProducersResponse(
        topics=tuple(
            leaders.TopicProducers(
                topic.name, tuple(_partition_producers(asked, topic.name, index) for index in topic.partition_indexes)
            )
            for topic in request.topics
        )
    )


def _not_leader(asked: Asked, topic: str, index: int) -> int:
    state = asked.cluster.state
    if asked.error:
        return asked.error
    if topic not in state.topics or index >= len(state.topics[topic].partitions):
        return codes.UNKNOWN_TOPIC_OR_PARTITION
    return codes.NONE if state.leader_of(topic, index) == asked.node else codes.NOT_LEADER_OR_FOLLOWER


def _partition_producers(asked: Asked, topic: str, index: int) -> leaders.PartitionProducers:
    denied = codes.TOPIC_AUTHORIZATION_FAILED if topic in asked.cluster.deny_read else codes.NONE
    error = denied or _not_leader(asked, topic, index)
    producers = {} if error else asked.cluster.state.log(topic, index).producers
    return leaders.PartitionProducers(
        index,
        error,
        None,
        tuple(
            leaders.ProducerState(
                producer_id,
                item.producer_epoch,
                0,
                item.last_timestamp_ms,
                item.coordinator_epoch,
                item.start_offset,
            )
            for producer_id, item in producers.items()
        ),
    )


def _write_txn_markers(asked: Asked, request: leaders.WriteTxnMarkersRequest) -> leaders.WriteTxnMarkersResponse:
    return leaders.WriteTxnMarkersResponse(
        tuple(
            leaders.WrittenMarker(
                marker.producer_id,
                tuple(
                    leaders.MarkedTopic(
                        topic.name,
                        tuple(_marked(asked, marker, topic.name, index) for index in topic.partition_indexes),
                    )
                    for topic in marker.topics
                ),
            )
            for marker in request.markers
        )
    )


def _marked(asked: Asked, marker: leaders.TxnMarker, topic: str, index: int) -> leaders.MarkedPartition:
    producer, epoch = (marker.producer_id, marker.producer_epoch), marker.coordinator_epoch
    error = _not_leader(asked, topic, index) or asked.cluster.state.log(topic, index).mark(
        producer, commit=marker.transaction_result, coordinator_epoch=epoch
    )
    return leaders.MarkedPartition(index, error)


def _describe_groups(asked: Asked, request: groups.DescribeGroupsRequest) -> groups.DescribeGroupsResponse:
    return groups.DescribeGroupsResponse(groups=tuple(_described_group(asked, name) for name in request.groups))


def _list_groups(asked: Asked, _request: group_listings.ListGroupsRequest) -> group_listings.ListGroupsResponse:
    state = asked.cluster.state
    names = state.groups.keys() - asked.cluster.deny_groups  # the others are left out, without a word
    here = [known for name in names if (known := state.group(name)) and state.coordinator(name) == asked.node]
    return group_listings.ListGroupsResponse(
        error_code=asked.error,
        groups=tuple(
            group_listings.ListedGroup(known.group_id, known.protocol_type, known.state, "classic")
            for known in here
            if (known.state != "Dead" or known.protocol_type) and not asked.error  # Dead, and not yet removed
        ),
    )


def _described_group(asked: Asked, name: str) -> groups.DescribedGroup:
    known = asked.cluster.state.group(name)
    error = codes.GROUP_AUTHORIZATION_FAILED if name in asked.cluster.deny_groups else asked.error
    if not error and asked.cluster.state.coordinator(name) != asked.node:
        error = codes.NOT_COORDINATOR
    if known is None or error:
        missing = codes.GROUP_ID_NOT_FOUND if asked.version >= 6 else codes.NONE
        return groups.DescribedGroup(error_code=error or missing, group_id=name, group_state="" if error else "Dead")
    return groups.DescribedGroup(
        group_id=name,
        group_state=known.state,
        protocol_type=known.protocol_type,
        protocol_data=known.protocol,
        members=tuple(
            groups.GroupMember(each.member_id, None, each.client_id, each.host, each.metadata, each.assignment)
            for each in known.members
        ),
    )


def _describe_log_dirs(asked: Asked, request: disks.DescribeLogDirsRequest) -> disks.DescribeLogDirsResponse:
    assert request.topics == (), "the fake knows no sizes of topics"
    if asked.error:
        return disks.DescribeLogDirsResponse(error_code=asked.error)
    return disks.DescribeLogDirsResponse(results=tuple(map(_log_dir, asked.cluster.state.log_dirs_of(asked.node))))


def _log_dir(each: LogDir) -> disks.DescribedLogDir:
    """One that is offline has no sizes."""
    if each.is_offline:
        return disks.DescribedLogDir(codes.KAFKA_STORAGE_ERROR, each.path)
    total, usable = (-1 if size is None else size for size in (each.total_bytes, each.usable_bytes))
    return disks.DescribedLogDir(log_dir=each.path, total_bytes=total, usable_bytes=usable)


def _describe_configs(asked: Asked, request: configs.DescribeConfigsRequest) -> configs.DescribeConfigsResponse:
    (query,) = request.resources
    assert query[:2] == (configs.ConfigOf.BROKER, str(asked.node)), "a broker describes its own settings alone"
    known = {} if asked.error else asked.cluster.state.settings
    found = tuple(configs.DescribedConfig(name, known[name]) for name in query[2] or () if name in known)
    return configs.DescribeConfigsResponse(results=(configs.DescribedResource(asked.error, None, *query[:2], found),))


HANDLERS: dict[str, Callable[[Asked, Any], Any]] = {
    "ApiVersions": _api_versions,
    "SaslHandshake": _sasl_handshake,
    "SaslAuthenticate": _sasl_authenticate,
    "Metadata": _metadata,
    "FindCoordinator": _find_coordinator,
    "InitProducerId": _init_producer_id,
    "DescribeTransactions": _describe_transactions,
    "ListTransactions": _list_transactions,
    "DescribeProducers": _describe_producers,
    "WriteTxnMarkers": _write_txn_markers,
    "DescribeGroups": _describe_groups,
    "ListGroups": _list_groups,
    "ListOffsets": log_answers.list_offsets,
    "Fetch": log_answers.fetch,
    "DescribeLogDirs": _describe_log_dirs,
    "DescribeConfigs": _describe_configs,
}
