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
from tests.open_transactions import zombie
from tests.sandbox_fixtures import PATIENCE_S, wait_until, wait_until_as_before

pytestmark = pytest.mark.live
Invoke = Any


def app_of(stack: Stack, tmp_path: Path) -> App:
    settings = ClientSettings(tuple(stack.bootstrap_servers.split(",")))
    return App(Target(client=settings), Deadline.after(60), tmp_path)


def state_of(stack: Stack, tmp_path: Path, transactional_id: str) -> TransactionDescription:
    with app_of(stack, tmp_path).transactions() as admin:
        state = admin.describe_transactions([TransactionalId(transactional_id)])[TransactionalId(transactional_id)]
    assert isinstance(state, TransactionDescription), state
    return state


def test_too_few_replicas_in_sync_are_named_and_the_id_moves_when_they_are_back(
    invoke: Invoke, three_brokers: Stack, unique: str, tmp_path: Path
) -> None:
    """`fence` ended with "; now PrepareCommit…", and `txn hanging` with 0."""
    admin = AdminClient({"bootstrap.servers": three_brokers.bootstrap_servers})
    with app_of(three_brokers, tmp_path).transactions() as asked:
        found = asked.find_coordinators([TransactionalId(unique)])[TransactionalId(unique)]
    assert isinstance(found, Coordinator)
    leader, lost = [each for each in (1, 2, 3) if each != found.node_id]
    topic = NewTopic(unique, 1, replica_assignment=[[leader, lost]], config={"min.insync.replicas": "2"})
    admin.create_topics([topic])[unique].result(PATIENCE_S)
    producer = zombie(three_brokers, unique, unique)

    def around() -> EndEvidence | None:
        found = examine_unended(
            app_of(three_brokers, tmp_path), [state_of(three_brokers, tmp_path, unique)], least_ms=0
        )
        return found[0].around if found else None

    try:
        process.signal_group(three_brokers.node(f"broker-{lost}").process, signal.SIGKILL)
        producer.commit_transaction(PATIENCE_S)
        wait_until(
            lambda: (seen := around()) is not None and seen.below_min_isr == (f"{unique}-0",),
            what="the lost replica to be out of sync",
        )
        state = state_of(three_brokers, tmp_path, unique)
        [stuck] = examine_unended(app_of(three_brokers, tmp_path), [state], least_ms=0)
        assert (state.state, stuck.obstacle(), stuck.is_certain) == ("PrepareCommit", Obstacle.BELOW_MIN_ISR, True)
        # a leader that had the marker before it knew of the lost replica has ended it there
        assert (*stuck.around.open_at, *stuck.around.ended_at, stuck.around.release) == (f"{unique}-0", (4, 4))
        assert examine_unended(app_of(three_brokers, tmp_path), [state], least_ms=3_600_000) == []
        flags = ("-b", three_brokers.bootstrap_servers, "-o", "json")
        fenced = invoke("fence", unique, "--yes", "--unknown-liveness", "--timeout", "5s", *flags)
        assert [row["outcome"] for row in fenced.json()["data"]["rows"]] == ["unconfirmed"], fenced.stderr
        assert "transaction_not_ended" in [each["code"] for each in fenced.json()["errors"]]
    finally:
        three_brokers.stop_node(f"broker-{lost}")
        three_brokers.start_node(f"broker-{lost}")
        wait_until_as_before(three_brokers)
    wait_until(
        lambda: state_of(three_brokers, tmp_path, unique).state == "CompleteCommit", what="the end of the transaction"
    )
