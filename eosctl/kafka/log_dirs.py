"""The log directories of brokers and the free space of their disks, as DescribeLogDirs reports them (KIP-827)."""

from __future__ import annotations

from collections.abc import Mapping

from eosctl.core.records import LogDir
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError
from eosctl.kafka.cluster import Cluster
from eosctl.kafka.every_broker import ask_every_broker
from eosctl.kafka.topics.stream import Address
from eosctl.wire.error_codes import KAFKA_STORAGE_ERROR, NONE
from eosctl.wire.log_dir_messages import (
    DESCRIBE_LOG_DIRS,
    DescribedLogDir,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)


def log_dirs_of(
    cluster: Cluster, brokers: Mapping[int, Address], *, deadline: Deadline
) -> dict[int, tuple[LogDir, ...]]:
    """Return the log directories of each broker that reports them by `deadline`, by broker id."""

    def ask(address: Address) -> DescribeLogDirsResponse:
        return cluster.ask(address, DESCRIBE_LOG_DIRS, DescribeLogDirsRequest())

    answers = ask_every_broker(cluster, brokers, ask, deadline=deadline)
    return {
        broker: tuple(_log_dir(each) for each in answer.results if each.error_code in {NONE, KAFKA_STORAGE_ERROR})
        for broker, answer in answers.items()
        if not isinstance(answer, EosctlError) and answer.error_code == NONE and answer.results
    }


def _log_dir(item: DescribedLogDir) -> LogDir:
    is_known = item.total_bytes > 0 and item.usable_bytes >= 0
    return LogDir(
        item.log_dir,
        is_offline=item.error_code == KAFKA_STORAGE_ERROR,
        total_bytes=item.total_bytes if is_known else None,
        usable_bytes=item.usable_bytes if is_known else None,
    )
