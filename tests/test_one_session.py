"""How often a command connects to the brokers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.core.transactions import Coordinator
from eosctl.deadline import Clock, Deadline
from eosctl.errors import DeadlineError
from eosctl.kafka.session import KafkaSession
from eosctl.kafka.transactions.admin import NativeTransactionAdmin
from tests.command_lines import LINES, Line, count_connects, prepare
from tests.conftest import Invoke
from tests.fakes.broker import FakeCluster
from tests.fakes.canaries import canary_world


@pytest.mark.parametrize("line", LINES, ids=str)
def test_a_command_connects_once_to_each_broker_that_it_needs(invoke: Invoke, tmp_path: Path, line: Line) -> None:
    """`rescue` connected 29 times: with TLS and SCRAM each of them costs six round trips and a key derivation."""
    with canary_world(tmp_path) as world:
        prepare(invoke, world, line)
        assert max(count_connects(invoke, world, line).values(), default=0) <= 1


@pytest.fixture
def asked() -> Iterator[Asked]:
    with FakeCluster(brokers=1) as cluster:
        session = KafkaSession()
        yield Asked(cluster, session)
        session.close()


class Asked:
    """One session to a broker that knows an id, and a deadline for each question."""

    def __init__(self, cluster: FakeCluster, session: KafkaSession) -> None:
        self.cluster, self.session = cluster, session
        self.settings = ClientSettings(cluster.bootstrap_servers)

    def admin(self, timeout_s: float = 30) -> NativeTransactionAdmin:
        connections = self.session.to(ClientSettings(self.cluster.bootstrap_servers))
        return NativeTransactionAdmin(
            self.settings, deadline=Deadline.after(timeout_s, Clock()), connections=connections
        )

    def fence(self, known: Mapping[TransactionalId, Coordinator]) -> int:
        with self.admin() as admin:
            [answer] = admin.fence(list(known), transaction_timeout_ms=1000, coordinators=known)
        assert answer.fault is None
        return answer.attempts


def test_connections_that_brokers_ended_meanwhile_are_not_used(asked: Asked) -> None:
    """A fence over an idle connection that had ended would have been "unconfirmed", though it was never sent."""
    wanted = TransactionalId("g-orders-0")
    with asked.admin() as admin:
        coordinator = admin.find_coordinators([wanted])[wanted]
    assert isinstance(coordinator, Coordinator)
    asked.cluster.drop_connections()
    time.sleep(0.05)
    assert asked.fence({wanted: coordinator}) == 1
    assert asked.cluster.accepted.total() == 2


def test_each_question_has_its_own_deadline(asked: Asked) -> None:
    with asked.admin(timeout_s=30) as admin, asked.admin(timeout_s=0.01) as late:
        assert admin.cluster_id()
        time.sleep(0.02)
        with pytest.raises(DeadlineError):
            late.list_groups()
        assert admin.list_groups() is not None


def test_a_users_end_leaves_others_their_connections(asked: Asked) -> None:
    with asked.admin() as first:
        first.cluster_id()
        with asked.admin() as second:
            second.cluster_id()
        assert first.list_groups() is not None
    assert asked.cluster.accepted.total() == 1
