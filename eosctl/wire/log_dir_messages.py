"""The message that asks a broker for its log directories: DescribeLogDirs.

Layouts: the message JSON of Apache Kafka 4.3. An unset field has the default Kafka gives it.
"""

from __future__ import annotations

from typing import NamedTuple

from eosctl.wire.api import Api
from eosctl.wire.primitives import BOOL, INT16, INT32, INT64, STRING
from eosctl.wire.schema import Array, since, struct_of


class LogDirTopic(NamedTuple):
    topic: str
    partitions: tuple[int, ...]


class DescribeLogDirsRequest(NamedTuple):
    """Every log directory is in the response; sizes are those of `topics`, None for all."""

    topics: tuple[LogDirTopic, ...] | None = ()


class LogDirPartition(NamedTuple):
    partition_index: int
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False


class LogDirTopicSizes(NamedTuple):
    name: str
    partitions: tuple[LogDirPartition, ...]


class DescribedLogDir(NamedTuple):
    """A log directory; `total_bytes` and `usable_bytes` are of the volume (KIP-827), -1 where they are unknown."""

    error_code: int = 0
    log_dir: str = ""
    topics: tuple[LogDirTopicSizes, ...] = ()
    total_bytes: int = -1
    usable_bytes: int = -1


class DescribeLogDirsResponse(NamedTuple):
    """The log directories; up to v2 a refusal is a response without any."""

    throttle_time_ms: int = 0
    error_code: int = 0
    results: tuple[DescribedLogDir, ...] = ()


DESCRIBE_LOG_DIRS = Api(
    key=35,
    name="DescribeLogDirs",
    request=struct_of(
        DescribeLogDirsRequest,
        topics=Array(struct_of(LogDirTopic, topic=STRING, partitions=Array(INT32)), nullable=True),
    ),
    response=struct_of(
        DescribeLogDirsResponse,
        throttle_time_ms=INT32,
        error_code=since(3, INT16, ignorable=True),
        results=Array(
            struct_of(
                DescribedLogDir,
                error_code=INT16,
                log_dir=STRING,
                topics=Array(
                    struct_of(
                        LogDirTopicSizes,
                        name=STRING,
                        partitions=Array(
                            struct_of(
                                LogDirPartition,
                                partition_index=INT32,
                                partition_size=INT64,
                                offset_lag=INT64,
                                is_future_key=BOOL,
                            )
                        ),
                    )
                ),
                total_bytes=since(4, INT64, ignorable=True),
                usable_bytes=since(4, INT64, ignorable=True),
            )
        ),
    ),
    oldest=1,
    newest=4,
    flexible_from=2,
    releases={1: "2.0", 2: "2.6", 3: "3.2", 4: "3.3"},
)
