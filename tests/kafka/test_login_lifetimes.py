"""Logins that end (connections.max.reauth.ms, KIP-368): long commands log in again before a broker cuts them off."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from eosctl.core.clients.settings import ClientSettings, Secret
from eosctl.core.ids import TransactionalId
from eosctl.deadline import Clock, Deadline
from eosctl.kafka.transactions.admin import NativeTransactionAdmin
from eosctl.kafka.transactions.fencing import IDS_PER_CONNECTION, WINDOW
from tests.fakes.broker import FakeCluster, Seen
from tests.fakes.clock import FakeTime

LIFETIME_S = 100.0
IDS = [TransactionalId(f"id-{number}") for number in range(IDS_PER_CONNECTION)]


@pytest.fixture
def time() -> FakeTime:
    return FakeTime(1_700_000_000.0)


@pytest.fixture
def cluster(time: FakeTime) -> Iterator[FakeCluster]:
    with FakeCluster(users={"alice": "secret"}) as made:
        made.session_lifetime_ms = int(LIFETIME_S * 1000)
        made.now_s = lambda: time.now_s
        yield made


def logins(cluster: FakeCluster) -> int:
    return cluster.count("SaslAuthenticate")


def admin_of(cluster: FakeCluster, time: FakeTime, *, on_the_wall: bool = False) -> NativeTransactionAdmin:
    """With `on_the_wall` that time passes for no deadline."""
    clock = replace(Clock(), now_s=lambda: time.now_s) if on_the_wall else time.clock()
    settings = ClientSettings(
        cluster.bootstrap_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username="alice",
        sasl_password=Secret("secret"),
    )
    return NativeTransactionAdmin(settings, deadline=Deadline.after(10 * LIFETIME_S, clock))


@pytest.mark.parametrize("at_a_question", [False, True])
def test_a_connection_whose_login_is_nearly_over_is_not_used_again(
    cluster: FakeCluster, time: FakeTime, at_a_question: bool
) -> None:
    """The broker used to cut it off; and a login goes on to end while a question stands on the screen."""
    with admin_of(cluster, time, on_the_wall=at_a_question) as admin:
        admin.describe_transactions([TransactionalId("a")])
        before = logins(cluster)
        time.pass_until(time.now_s + 0.8 * LIFETIME_S)
        admin.describe_transactions([TransactionalId("a")])
        assert (logins(cluster), cluster.cut_off) == (before, 0)
        time.pass_until(time.now_s + 0.1 * LIFETIME_S)
        admin.describe_transactions([TransactionalId("a")])
        assert (logins(cluster), cluster.cut_off) == (before + 1, 0)


def test_a_login_without_an_end_is_kept(cluster: FakeCluster, time: FakeTime) -> None:
    cluster.session_lifetime_ms = 0
    with admin_of(cluster, time) as admin:
        admin.describe_transactions([TransactionalId("a")])
        before = logins(cluster)
        time.pass_until(time.now_s + 5 * LIFETIME_S)
        admin.describe_transactions([TransactionalId("a")])
        assert logins(cluster) == before


@pytest.mark.parametrize("version", [0, 1], ids=["v0, which tells no lifetime", "v1"])
def test_fencing_goes_on_over_a_new_connection_where_the_login_ends_meanwhile(
    cluster: FakeCluster, time: FakeTime, version: int
) -> None:
    """It was cut off with ids in flight: they were tried again after a while, as they still are where none is told."""
    cluster.versions["SaslAuthenticate"] = (0, version)
    passes = iter([0.9, *[0.0] * (WINDOW - 1), 0.2, *[0.0] * len(IDS)])  # behind the first window it would have ended

    def answered(seen: Seen, frame: bytes) -> bytes:
        if seen.api == "InitProducerId":
            time.now_s += next(passes) * LIFETIME_S
        return frame

    cluster.tamper = answered
    with admin_of(cluster, time, on_the_wall=True) as admin:
        answers = list(admin.fence(IDS, transaction_timeout_ms=30_000))
    assert sorted(answer.transactional_id for answer in answers) == sorted(IDS)
    assert all(answer.fault is None and answer.confirmed for answer in answers)
    assert (cluster.cut_off, cluster.count("InitProducerId")) == (1 - version, len(IDS))
