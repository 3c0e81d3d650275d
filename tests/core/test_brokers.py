"""Whose brokers they are, by signs alone, and what they lack."""

from __future__ import annotations

import pytest

from eosctl.core.brokers import (
    APPLICATION_APIS,
    SOURCE_APIS,
    BrokerKind,
    KnownBrokers,
    Shortage,
    is_left_out,
    kind_of,
    shortage_of,
)
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.versions import BrokerFeatures

KAFKA_0_10 = frozenset(range(21))
KAFKA_4_3 = frozenset({0, 1, 2, 3, *range(8, 52), 55, 57, 60, 61, 64, 65, 66, 68, 69})
WITHOUT_TRANSACTIONS = KAFKA_4_3 - {22, 24, 25, 26, 27, 28, 61, 65, 66}


def broker(apis: frozenset[int] = KAFKA_4_3, host: str = "b1", **levels: int) -> BrokerFeatures:
    return BrokerFeatures(levels, {}, apis, host)


@pytest.mark.parametrize(
    ("features", "cluster_id", "server", "kind"),
    [
        (broker(host="ns.servicebus.windows.net"), "ns", "x:1", "Azure Event Hubs"),
        (broker(), "anything", "ns.servicebus.windows.net:9093", "Azure Event Hubs"),
        (broker(host="b-1.c.abc.c2.kafka.eu-west-1.amazonaws.com"), "uuid", "x:1", "Amazon MSK"),
        (broker(host="boot-1.kafka-serverless.us-east-1.amazonaws.com"), "uuid", "x:1", "Amazon MSK"),
        (broker(host="b0-pkc-1.eu-west-1.aws.confluent.cloud"), "lkc-1", "x:1", "Confluent Cloud"),
        (BrokerFeatures({"confluent.metadata.version": 9}, {}, KAFKA_4_3, "kafka"), "x", "x:1", "Confluent Server"),
        (broker(), "redpanda.463e510f-bf49-4e7a-9d46-af25ec99fba0", "x:1", "Redpanda"),
        (broker(), "redpanda.initializing", "x:1", "Redpanda"),
        (BrokerFeatures({"automq.version": 3}, {}, KAFKA_4_3, "b"), "x", "x:1", "AutoMQ"),
        (broker(host="api-1.us-east-1.warpstream.com"), "x", "x:1", "WarpStream"),
    ],
)
def test_a_kind_is_named_by_a_sign_that_only_its_vendor_gives(
    features: BrokerFeatures, cluster_id: str, server: str, kind: str
) -> None:
    assert kind_of([features], cluster_id, [server]).name == kind


@pytest.mark.parametrize(
    ("host", "cluster_id"),
    [
        ("kafka", "MkU3OEVBNTcwNTJENDM2Qk"),
        ("servicebus.windows.net.example.com", "x"),
        ("redpanda-0", "x"),
        ("warpstream.com.evil.example", "my-redpanda.cluster"),
        ("kafka.eu-west-1.amazonaws.com.example", None),
    ],
)
def test_without_a_sign_the_kind_is_not_known(host: str, cluster_id: str | None) -> None:
    """A name that somebody chose is no evidence, nor is an API list like Kafka's."""
    assert kind_of([broker(host=host)], cluster_id, [f"{host}:9092"]) == BrokerKind()


def test_signs_of_two_kinds_prove_neither() -> None:
    of_confluent = BrokerFeatures({"confluent.metadata.version": 9}, {}, KAFKA_4_3, "b0.aws.confluent.cloud")
    assert kind_of([of_confluent], "lkc-1", []).name == "Confluent Cloud"  # which runs Confluent's server
    assert kind_of([broker(host="a.servicebus.windows.net")], "redpanda.1", []).name == ""


@pytest.mark.parametrize(
    ("offered", "key", "left_out"),
    [
        (KAFKA_0_10, 22, False),
        (KAFKA_0_10, 65, False),
        (frozenset(range(52)), 65, False),  # 2.7
        (frozenset(range(52)) | {10_001}, 65, False),  # the same with APIs of a fork's own
        (WITHOUT_TRANSACTIONS, 22, True),
        (WITHOUT_TRANSACTIONS, 65, True),
        (frozenset(range(38)) - {22, 24, 25, 26, 28}, 65, True),  # no old Kafka either: 0.11 had them
        (KAFKA_4_3 - {65}, 65, True),
    ],
)
def test_a_newer_broker_can_help_only_where_age_explains_the_gap(
    offered: frozenset[int], key: int, left_out: bool
) -> None:
    assert is_left_out(offered, key) is left_out


def shortage(*brokers: BrokerFeatures, apis: dict[int, str] | None = None, cluster_id: str = "x") -> Shortage | None:
    known = KnownBrokers(dict(enumerate(brokers, start=1)))
    return shortage_of(known, apis or dict(SOURCE_APIS), cluster_id, ClientSettings(("x:1",)))


def test_one_broker_that_lacks_an_api_is_a_shortage() -> None:
    found = shortage(broker(), broker(KAFKA_4_3 - {26}))
    assert found is not None
    assert found.without == {2: ("EndTxn",)}
    assert not found.is_age
    assert shortage(broker(), broker()) is None


def test_source_tasks_commit_no_offsets_of_a_group() -> None:
    """Brokers without AddOffsetsToTxn and TxnOffsetCommit are enough for them, and not for Kafka Streams."""
    without = broker(KAFKA_4_3 - {25, 28})
    assert shortage(without) is None
    assert shortage(without, apis=dict(APPLICATION_APIS)) is not None


def test_only_brokers_that_are_old_are_to_be_upgraded() -> None:
    old, other = shortage(broker(KAFKA_0_10)), shortage(broker(WITHOUT_TRANSACTIONS))
    assert old is not None
    assert other is not None
    assert old.is_age
    assert "Upgrade" in old.fix
    assert "Upgrade" not in other.fix
