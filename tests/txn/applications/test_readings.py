"""What a transactional id can be: tables of real names, and properties of all."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.ids import TransactionalId
from eosctl.txn.applications.rules import ClusterFacts, IdReading, readings_of

NOTHING = ClusterFacts()
CLUSTER = ClusterFacts(
    connect_groups={
        "connect": frozenset({"orders", "file-0"}),
        "connect-cluster": frozenset(),
        "a-b": frozenset({"c"}),
    },
    other_groups=frozenset({"billing", "audit", "pay.ments"}),
    topics={"in": 4, "shop.orders": 2, "orders": 2},
)
UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
HASH = "7f86b06891c19f1e76c3f65c90ce752b"


def read(transactional_id: str, known: ClusterFacts = NOTHING) -> tuple[IdReading, ...]:
    return readings_of(TransactionalId(transactional_id), known)


@pytest.mark.parametrize(
    ("transactional_id", "expected"),
    [
        (f"billing-{UUID}-1", IdReading("kafka-streams", "billing", None, None, "exactly_once_v2", 1, sure=True)),
        (f"my-app-{UUID}-12", IdReading("kafka-streams", "my-app", None, None, "exactly_once_v2", 12)),
        ("billing-0_3", IdReading("kafka-streams", "billing", None, None, "exactly_once", 0, 3, sure=True)),
        ("my-app-10_0", IdReading("kafka-streams", "my-app", None, None, "exactly_once", 10, 0)),
        ("sink-3-41", IdReading("flink-sink", "sink", first=3, second=41)),
        ("a-b-c-0-9223372036854775807", IdReading("flink-sink", "a-b-c", first=0, second=2**63 - 1)),
        (f"Sink: out-{HASH}-42", IdReading("flink-producer", f"Sink: out-{HASH}", first=42)),
        ("tx7", IdReading("spring", "tx", first=7)),
        ("tx.audit.in.3", IdReading("spring", "tx.audit", "audit", first=3, sure=True)),
        ("tx-pay.ments.shop.orders.1", IdReading("spring", "tx-pay.ments", "pay.ments", first=1, sure=True)),
        ("connect-orders-0", IdReading("connect", "connect-orders", "connect", "orders", first=0, sure=True)),
        ("connect-file-0-1", IdReading("connect", "connect-file-0", "connect", "file-0", first=1, sure=True)),
        ("connect-gone-0", IdReading("connect", "connect-gone", "connect", "gone", first=0)),
        ("connect-cluster-connect", IdReading("connect", "connect-cluster-connect", "connect", sure=True)),
        ("connect-cluster-lost", IdReading("connect", "connect-cluster-lost", "lost")),
        ("eosctl-config-connect", IdReading("eosctl", "eosctl", sure=True)),
        ("eosctl-offsets-connect-writer", IdReading("eosctl", "eosctl", sure=True)),
    ],
)
def test_an_id_that_reads_in_one_way(transactional_id: str, expected: IdReading) -> None:
    assert read(transactional_id, CLUSTER) == (expected,)


@pytest.mark.parametrize(
    ("transactional_id", "products"),
    [
        ("tx-7", ["flink-producer", "spring"]),  # a number behind a dash: both make such ids
        ("a-b-c-0", ["connect"]),  # connector c of group a-b is there
        ("a-b-d-0", ["connect"]),
        ("connect-old-1-0", ["connect", "flink-sink"]),  # no such connector any more
        (f"connect-x-{UUID}-1", ["connect", "kafka-streams"]),
        ("connect-cluster-jdbc-0", ["connect", "connect"]),  # jdbc of connect-cluster, or cluster-jdbc of connect
    ],
)
def test_an_id_that_could_be_several_things_is_all_of_them(transactional_id: str, products: list[str]) -> None:
    assert [each.product for each in read(transactional_id, CLUSTER)] == products
    assert all(not each.sure for each in read(transactional_id, CLUSTER)) or products == ["connect"]


@pytest.mark.parametrize(
    "transactional_id",
    [
        "",
        "-",
        "payments",
        "a_b",
        "7",
        "tx-07",
        "x-007",
        f"app-{UUID}",
        "app-1b4e28ba-2fa1-11d2-883f-abcdef123456",
        "tx.audit.in.",
        "ä-é",
        "a-1-",
        "\udce9-x",
    ],
)
def test_an_id_that_nothing_makes(transactional_id: str) -> None:
    assert read(transactional_id, CLUSTER) == ()


def test_a_partition_that_the_topic_does_not_have_is_no_listener_s() -> None:
    assert [each.name for each in read("tx.audit.in.4", CLUSTER)] == ["tx.audit.in."]


names = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=12)
numbers = st.integers(0, 2**31 - 1)


@given(names, numbers, st.integers(0, 2**63 - 1))
def test_flink_reads_what_flink_made(prefix: str, subtask: int, checkpoint: int) -> None:
    sinks = [each for each in read(f"{prefix}-{subtask}-{checkpoint}") if each.product == "flink-sink"]
    assert sinks in ([IdReading("flink-sink", prefix, first=subtask, second=checkpoint)], [])
    assert sinks or read(f"{prefix}-{subtask}-{checkpoint}")[0].product in (
        "kafka-streams",
        "flink-producer",
        "connect",
    )


@given(names, numbers, numbers)
def test_streams_reads_what_streams_made(application: str, one: int, other: int) -> None:
    known = ClusterFacts(other_groups=[application])
    process = uuid.UUID(int=one * 2**90 + other)
    (reading,) = read(f"{application}-{process}-{other}", known)
    assert (reading.name, reading.guarantee, reading.first, reading.sure) == (
        application,
        "exactly_once_v2",
        other,
        True,
    )
    (reading,) = read(f"{application}-{one}_{other}", known)
    assert reading[1:] == (application, None, None, "exactly_once", one, other, True)


@given(names, names, numbers)
def test_connect_is_among_the_readings_of_its_tasks(group: str, connector: str, task: int) -> None:
    known = ClusterFacts({group: frozenset()})
    found = [each for each in read(f"{group}-{connector}-{task}", known) if each.product == "connect"]
    assert IdReading("connect", f"{group}-{connector}", group, connector, first=task) in found
    known = ClusterFacts({group: frozenset({connector})})
    assert IdReading("connect", f"{group}-{connector}", group, connector, first=task, sure=True) in read(
        f"{group}-{connector}-{task}", known
    )


@given(st.text(max_size=40))
def test_any_text_can_be_read(transactional_id: str) -> None:
    for reading in read(transactional_id, CLUSTER):
        assert reading.name
        assert reading.product == "eosctl" or transactional_id.startswith(reading.name)
