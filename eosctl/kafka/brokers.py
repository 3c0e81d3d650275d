"""Requests to every broker: which do not respond, what they offer, and their log directories.

One request goes to every broker concurrently, so that all brokers that do not respond cost one wait together.
ApiVersions finds those that do not respond, and reports the APIs that a broker offers, and its features: the supported
levels, and those in use (KIP-584). Log directories, and the free space of their disks, are as DescribeLogDirs reports
them (KIP-827).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeVar

from eosctl.core.brokers import KnownBrokers
from eosctl.core.records import LogDir
from eosctl.core.versions import BrokerFeatures
from eosctl.deadline import Deadline
from eosctl.errors import BrokerError, EosctlError, UnauthorizedError
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.faults import fault
from eosctl.kafka.topics.stream import Address
from eosctl.wire.cluster_messages import API_VERSIONS, ApiVersionsRequest, ApiVersionsResponse
from eosctl.wire.error_codes import CLUSTER_AUTHORIZATION_FAILED, KAFKA_STORAGE_ERROR, NONE, error_name
from eosctl.wire.log_dir_messages import (
    DESCRIBE_LOG_DIRS,
    DescribedLogDir,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)

T = TypeVar("T")
_PARALLEL_BROKERS = 32


def ask_every_broker(
    cluster: Cluster, brokers: Mapping[int, Address], ask: Callable[[Address], T], *, deadline: Deadline
) -> dict[int, T | EosctlError]:
    """Return the result of `ask` for each broker, or the error that prevented it by `deadline`, by broker id."""
    from concurrent.futures import ThreadPoolExecutor

    def ask_within(address: Address) -> T | EosctlError:
        try:
            with cluster.within(deadline):
                return ask(address)
        except EosctlError as exc:
            return exc

    with ThreadPoolExecutor(_PARALLEL_BROKERS) as pool:
        try:
            return dict(zip(brokers, pool.map(ask_within, brokers.values()), strict=True))
        except BaseException:
            cluster.abort()  # wakes those that wait
            raise


def _versions_of_every_broker(
    cluster: Cluster, *, patience_s: float = math.inf
) -> tuple[dict[int, Address], dict[int, ApiVersionsResponse | EosctlError]]:
    """Ask one broker together with the metadata, then the others within half of the time that remains."""
    request = ApiVersionsRequest("eosctl", "1")
    listed, asked, answer = cluster.brokers_with(API_VERSIONS, request)
    brokers = {each.node_id: Address(each.host, each.port) for each in listed}
    others = {node: address for node, address in brokers.items() if address != asked}
    deadline = cluster.deadline().half(at_most_s=patience_s)
    answers = ask_every_broker(
        cluster, others, lambda address: cluster.ask(address, API_VERSIONS, request), deadline=deadline
    )
    return brokers, {node: answers.get(node, answer) for node in brokers}


def silent_among(cluster: Cluster, *, patience_s: float) -> dict[int, EosctlError]:
    """Map each broker that does not respond within `patience_s` to the error."""
    _brokers, answers = _versions_of_every_broker(cluster, patience_s=patience_s)
    return {broker: answer for broker, answer in answers.items() if isinstance(answer, EosctlError)}


def features_of(cluster: Cluster) -> KnownBrokers:
    """Return the report of each broker that responds within half of the remaining time; raises if none does."""
    brokers, answers = _versions_of_every_broker(cluster)
    known, missing = dict[int, BrokerFeatures](), dict[int, str]()
    failure: EosctlError | None = None
    for broker, answer in answers.items():
        if isinstance(answer, EosctlError):
            failure, missing[broker] = answer, answer.message
        elif answer.error_code != NONE:
            missing[broker] = f"it answers {error_name(answer.error_code)}"
        else:
            known[broker] = _features(answer, brokers[broker].host)
    if failure is not None and not known:
        raise failure
    return KnownBrokers(known, missing)


def _features(answer: ApiVersionsResponse, host: str) -> BrokerFeatures:
    return BrokerFeatures(
        {each.name: each.max_version for each in answer.supported_features},
        {each.name: each.max_version_level for each in answer.finalized_features},
        frozenset(each.api_key for each in answer.api_keys),
        host,
    )


def log_dirs_of(
    cluster: Cluster, brokers: Mapping[int, Address], *, deadline: Deadline
) -> dict[int, tuple[LogDir, ...] | EosctlError]:
    """Return the log directories of each broker, or why it did not report them by `deadline`, by broker id."""

    def ask(address: Address) -> tuple[LogDir, ...]:
        return _log_dirs(cluster.ask(address, DESCRIBE_LOG_DIRS, DescribeLogDirsRequest()))

    return ask_every_broker(cluster, brokers, ask, deadline=deadline)


def _log_dirs(answer: DescribeLogDirsResponse) -> tuple[LogDir, ...]:
    """Return the directories of an answer; up to version 2 a refusal is an answer without any.

    Raises UnauthorizedError or BrokerError.
    """
    if answer.error_code == CLUSTER_AUTHORIZATION_FAILED or (answer.error_code == NONE and not answer.results):
        raise UnauthorizedError("one may not DESCRIBE the cluster")
    if answer.error_code != NONE:
        raise BrokerError(str(fault(answer.error_code)))
    return tuple(_log_dir(each) for each in answer.results if each.error_code in {NONE, KAFKA_STORAGE_ERROR})


def _log_dir(item: DescribedLogDir) -> LogDir:
    is_known = item.total_bytes > 0 and item.usable_bytes >= 0
    return LogDir(
        item.log_dir,
        is_offline=item.error_code == KAFKA_STORAGE_ERROR,
        total_bytes=item.total_bytes if is_known else None,
        usable_bytes=item.usable_bytes if is_known else None,
    )
