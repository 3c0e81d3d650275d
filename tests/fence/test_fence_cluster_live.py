"""`eosctl fence` on three real brokers: a coordinator that dies in the middle, one that moves."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.core.transactions import Coordinator, TransactionDescription
from eosctl.deadline import Deadline
from eosctl.kafka.transactions.admin import NativeTransactionAdmin
from eosctl.sandbox.servers import process
from eosctl.sandbox.stack import Stack
from tests.sandbox_fixtures import wait_until_as_before

COUNT = 3000


def _admin(stack: Stack, *, timeout_s: float = 90) -> NativeTransactionAdmin:
    settings = ClientSettings(tuple(stack.bootstrap_servers.split(",")))
    return NativeTransactionAdmin(settings, deadline=Deadline.after(timeout_s))


def _busiest(admin: NativeTransactionAdmin, ids: list[TransactionalId]) -> int:
    """The broker that coordinates most of `ids`: one that came back may coordinate none for minutes."""
    found = admin.find_coordinators(ids).values()
    return Counter(each.node_id for each in found if isinstance(each, Coordinator)).most_common(1)[0][0]


def _require_listed(three_brokers: Stack, ids: list[TransactionalId]) -> None:
    """Nothing is missing: what a broker had moves to the others within seconds, and that is waited for."""
    with _admin(three_brokers) as admin:
        listings = admin.list_transactions()
        assert listings.missing == ()
        assert {*ids} <= {each.transactional_id for each in listings.found}
        described = admin.describe_transactions(ids)
        assert all(isinstance(each, TransactionDescription) for each in described.values())


@pytest.mark.live
@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_coordinator_goes_in_the_middle(three_brokers: Stack, unique: str, how: str) -> None:
    """Killed: connections break, answers are lost. Stopped: its coordinators move while it still answers.

    A listing right after a kill, while the ids are fenced, is complete.
    """
    ids = [TransactionalId(f"{unique}-{number}") for number in range(COUNT)]
    with _admin(three_brokers, timeout_s=300) as admin:
        assert all(answer.fault is None for answer in admin.fence(ids, transaction_timeout_ms=30_000))
        busiest = f"broker-{_busiest(admin, ids)}"
        answers = admin.fence(ids, transaction_timeout_ms=30_000)
        seen = [next(answers) for _ in range(200)]
        try:
            if how == "killed":
                process.signal_group(three_brokers.node(busiest).process, signal.SIGKILL)
                _require_listed(three_brokers, ids)
            else:
                three_brokers.stop_node(busiest)
            seen += list(answers)
        finally:
            three_brokers.stop_node(busiest)
            three_brokers.start_node(busiest)
            wait_until_as_before(three_brokers)
        assert sorted(answer.transactional_id for answer in seen) == sorted(ids)
        assert [answer for answer in seen if answer.fault is not None] == []
        assert max(answer.attempts for answer in seen) > 1, "nothing had to be asked again: the broker went too late"
        described = admin.describe_transactions(ids)
        for answer in seen:
            told = described[answer.transactional_id]
            assert isinstance(told, TransactionDescription)
            assert (told.producer_id, told.producer_epoch) == (answer.producer_id, answer.producer_epoch)


@pytest.mark.live
def test_a_listing_right_after_a_broker_froze_is_complete(three_brokers: Stack, unique: str) -> None:
    """It had the whole of --timeout to itself."""
    ids = [TransactionalId(f"{unique}-{number}") for number in range(50)]
    with _admin(three_brokers) as admin:
        assert all(answer.fault is None for answer in admin.fence(ids, transaction_timeout_ms=30_000))
        busiest = f"broker-{_busiest(admin, ids)}"
    broker = three_brokers.node(busiest).process
    try:
        process.signal_group(broker, signal.SIGSTOP)
        _require_listed(three_brokers, ids)
    finally:
        process.signal_group(broker, signal.SIGCONT)
        wait_until_as_before(three_brokers)


@pytest.mark.live
def test_ids_go_to_their_own_coordinators(three_brokers: Stack, invoke: Any, unique: str, tmp_path: Path) -> None:
    ids = tmp_path / "ids"
    ids.write_text("".join(f"{unique}-{number}\n" for number in range(60)))
    words = ["fence", "--from-file", str(ids), "--create-unknown", "--yes", "-o", "json"]
    outcome = invoke(*words, "-b", three_brokers.bootstrap_servers)
    assert outcome.exit_code == 0, outcome.stderr
    rows = outcome.json()["data"]["rows"]
    assert len({row["coordinator"] for row in rows}) > 1, "five partitions, whose first replicas are not all the same"
    assert {row["outcome"] for row in rows} == {"fenced"}
