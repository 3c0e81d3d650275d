"""The settings of topics and brokers: DescribeConfigs.

Layouts: the message JSON of Apache Kafka 4.3. An unset field has the default Kafka gives it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from eosctl.wire.api import Api
from eosctl.wire.primitives import BOOL, INT8, INT16, INT32, NULLABLE_STRING, STRING
from eosctl.wire.schema import Array, since, struct_of


class ConfigOf(IntEnum):
    """The kind of resource whose settings are requested."""

    TOPIC = 2
    BROKER = 4


SET_ON_TOPIC = 1
"""The source of a setting that a topic has itself (DYNAMIC_TOPIC_CONFIG)."""


class ConfigQuery(NamedTuple):
    """A resource, and the names of its settings; None for all of them."""

    resource_type: int
    resource_name: str
    configuration_keys: tuple[str, ...] | None = None


class DescribeConfigsRequest(NamedTuple):
    resources: tuple[ConfigQuery, ...] = ()
    include_synonyms: bool = False
    include_documentation: bool = False


class ConfigSynonym(NamedTuple):
    name: str
    value: str | None
    source: int


class DescribedConfig(NamedTuple):
    name: str
    value: str | None
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: tuple[ConfigSynonym, ...] = ()
    config_type: int = 0
    documentation: str | None = None


class DescribedResource(NamedTuple):
    error_code: int = 0
    error_message: str | None = None
    resource_type: int = 0
    resource_name: str = ""
    configs: tuple[DescribedConfig, ...] = ()


class DescribeConfigsResponse(NamedTuple):
    throttle_time_ms: int = 0
    results: tuple[DescribedResource, ...] = ()


DESCRIBE_CONFIGS = Api(
    key=32,
    name="DescribeConfigs",
    request=struct_of(
        DescribeConfigsRequest,
        resources=Array(
            struct_of(
                ConfigQuery,
                resource_type=INT8,
                resource_name=STRING,
                configuration_keys=Array(STRING, nullable=True),
            )
        ),
        include_synonyms=BOOL,
        include_documentation=since(3, BOOL),
    ),
    response=struct_of(
        DescribeConfigsResponse,
        throttle_time_ms=INT32,
        results=Array(
            struct_of(
                DescribedResource,
                error_code=INT16,
                error_message=NULLABLE_STRING,
                resource_type=INT8,
                resource_name=STRING,
                configs=Array(
                    struct_of(
                        DescribedConfig,
                        name=STRING,
                        value=NULLABLE_STRING,
                        read_only=BOOL,
                        config_source=INT8,
                        is_sensitive=BOOL,
                        synonyms=Array(
                            struct_of(ConfigSynonym, name=STRING, value=NULLABLE_STRING, source=INT8),
                        ),
                        config_type=since(3, INT8, ignorable=True),
                        documentation=since(3, NULLABLE_STRING, ignorable=True),
                    )
                ),
            )
        ),
    ),
    oldest=1,
    newest=4,
    flexible_from=4,
    releases={1: "1.1", 2: "2.0", 3: "2.6", 4: "2.7"},
)
