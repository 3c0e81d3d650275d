"""A transaction that its coordinator can't end, on three real brokers: its partition refuses the marker."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not listed as re-exported
    AdminClient,
    NewTopic,
)

from eosctl.app import App
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.core.transactions import Coordinator, TransactionDescription
from eosctl.deadline import Deadline
from eosctl.sandbox.servers import process
from eosctl.sandbox.stack import Stack
from eosctl.target import Target
from eosctl.txn.unended import EndEvidence, Obstacle
from eosctl.txn.unended_look import examine_unended
from tests.fakes.clock import given_time
from tests.open_transactions import zombie
from tests.sandbox_fixtures import PATIENCE_S, wait_until, wait_until_as_before

pytestmark = pytest.mark.live
Invoke = Any


def state_of(app: App, transactional_id: str) -> TransactionDescription:
    with app.transactions() as admin:
        state = admin.describe_transactions([TransactionalId(transactional_id)])[TransactionalId(transactional_id)]
    assert isinstance(state, TransactionDescription), state
    return state


def test_too_few_replicas_in_sync_are_named_and_the_id_moves_when_they_are_back(
    invoke: Invoke, three_brokers: Stack, unique: str, tmp_path: Path
) -> None:
    """`fence` ended with "; now PrepareCommit…", and `txn hanging` with 0.

    The lost broker is frozen, and so back at once: its coordinator sends the marker again and again meanwhile.
    """
    admin = AdminClient({"bootstrap.servers": three_brokers.bootstrap_servers})

    def addresses(*brokers: int) -> tuple[str, ...]:
        return tuple(three_brokers.node(f"broker-{number}").address for number in brokers)

    def app(*brokers: int) -> App:
        return App(Target(client=ClientSettings(addresses(*brokers))), Deadline.after(60), tmp_path)

    with app(1, 2, 3).transactions() as asked:
        found = asked.find_coordinators([TransactionalId(unique)])[TransactionalId(unique)]
    assert isinstance(found, Coordinator)
    leader, lost = [each for each in (1, 2, 3) if each != found.node_id]
    there = found.node_id, leader
    topic = NewTopic(unique, 1, replica_assignment=[[leader, lost]], config={"min.insync.replicas": "2"})
    admin.create_topics([topic])[unique].result(PATIENCE_S)
    producer = zombie(three_brokers, unique, unique)

    def around() -> EndEvidence | None:
        found = examine_unended(app(*there), [state_of(app(*there), unique)], least_ms=0)
        return found[0].around if found else None

    frozen = three_brokers.node(f"broker-{lost}").process
    process.signal_group(frozen, signal.SIGSTOP)
    try:
        producer.commit_transaction(PATIENCE_S)
        wait_until(
            lambda: (seen := around()) is not None and seen.below_min_isr == (f"{unique}-0",),
            what="the lost replica to be out of sync",
        )
        state = state_of(app(*there), unique)
        [stuck] = examine_unended(app(*there), [state], least_ms=0)
        assert (state.state, stuck.obstacle(), stuck.is_certain) == ("PrepareCommit", Obstacle.BELOW_MIN_ISR, True)
        # a leader that had the marker before it knew of the lost replica has ended it there
        assert (*stuck.around.open_at, *stuck.around.ended_at, stuck.around.release) == (f"{unique}-0", (4, 4))
        assert examine_unended(app(*there), [state], least_ms=3_600_000) == []
        flags = ("-b", ",".join(addresses(*there)), "-o", "json")

        def fence(timeout_s: float) -> None:
            words = ("fence", unique, "--yes", "--unknown-liveness", "--timeout", f"{timeout_s:g}s")
            fenced = invoke(*words, *flags)
            assert fenced.json()["kind"] != "error", fenced.stderr
            assert [row["outcome"] for row in fenced.json()["data"]["rows"]] == ["unconfirmed"], fenced.stderr
            assert "transaction_not_ended" in [each["code"] for each in fenced.json()["errors"]]

        given_time(fence, first_s=5)
    finally:
        process.signal_group(frozen, signal.SIGCONT)
        wait_until_as_before(three_brokers)
    wait_until(lambda: state_of(app(1, 2, 3), unique).state == "CompleteCommit", what="the end of the transaction")
