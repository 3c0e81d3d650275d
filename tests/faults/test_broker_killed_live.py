"""kill -9 of the only broker while eosctl talks to it; it is back some seconds later.

A coordinator that dies or moves among three brokers: tests/fence/test_fence_cluster_live.py.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eosctl.core.ids import TransactionalId
from eosctl.core.transactions import TransactionDescription
from eosctl.kafka.transactions.admin import NativeTransactionAdmin
from eosctl.sandbox.servers import process
from eosctl.sandbox.stack import Stack
from tests.conftest import Invoke
from tests.faults.conftest import Merge
from tests.faults.proxy import Api, Fate, Proxy

pytestmark = pytest.mark.live

OK, UNREACHABLE, PARTIAL = 0, 4, 7
BROKER = "broker-1"
PATIENT = ["--timeout", "180s"]


@contextmanager
def killed_at(stack: Stack, api: Api, number: int) -> Iterator[Proxy]:
    """A proxy that kills the broker before it passes that request on, and starts it again; it is up at the end."""
    came = threading.Event()
    failures: list[BaseException] = []

    def start_again() -> None:
        try:
            stack.stop_node(BROKER)  # waits until it is gone
            stack.start_node(BROKER)
        except BaseException as exc:
            failures.append(exc)

    starter = threading.Thread(target=start_again)

    def kill(api_key: int, so_many: int) -> Fate:
        if api_key == api and so_many == number:
            process.signal_group(stack.node(BROKER).process, signal.SIGKILL)
            came.set()
            starter.start()
            return Fate.CUT
        return Fate.PASS

    with Proxy(stack.bootstrap_servers, on_request=kill) as proxy:
        try:
            yield proxy
        finally:
            if came.is_set():
                starter.join()  # Stack gives up before a test does
    assert came.is_set(), "it was never asked for"
    assert not failures


def test_a_fence_of_many_ids(
    lone_broker: Stack, admin: NativeTransactionAdmin, invoke: Invoke, unique: str, tmp_path: Path
) -> None:
    """Ids that were fenced before, others whose answer was lost, and others that were never sent: all are fenced."""
    ids = [TransactionalId(f"{unique}-{number}") for number in range(2_000)]
    file = tmp_path / "ids"
    file.write_text("".join(f"{each}\n" for each in ids))
    with killed_at(lone_broker, Api.INIT_PRODUCER_ID, 700) as proxy:
        words = ["fence", "--from-file", str(file), "--create-unknown", "--yes", "-o", "json"]
        done = invoke(*words, *PATIENT, "-b", proxy.address)
    assert done.exit_code == OK, done.stderr
    rows = done.json()["data"]["rows"]
    assert [row["transactional_id"] for row in rows] == ids
    assert {row["outcome"] for row in rows} == {"fenced"}
    described = admin.describe_transactions(ids)
    for row in rows:
        told = described[row["transactional_id"]]
        assert isinstance(told, TransactionDescription)
        assert row["after"] == {"producer_id": told.producer_id, "producer_epoch": told.producer_epoch}


def test_an_offsets_merge(lone_broker: Stack, invoke: Invoke, merge: Merge) -> None:
    """Everything was sent, and nobody knows whether it was committed."""
    with killed_at(lone_broker, Api.END_TXN, 1) as proxy:
        done = invoke(*merge.words, *PATIENT, "-b", proxy.address)
    assert done.exit_code in (OK, UNREACHABLE, PARTIAL), done.stderr
    merge.check(done)
    merge.finish(invoke, lone_broker.bootstrap_servers)


def test_a_listing_of_transactions(lone_broker: Stack, invoke: Invoke, merge: Merge) -> None:
    """Half a listing would look whole: all brokers are asked again."""
    whole = invoke("txn", "list", *merge.where, "-b", lone_broker.bootstrap_servers)
    with killed_at(lone_broker, Api.LIST_TRANSACTIONS, 1) as proxy:
        done = invoke("txn", "list", *merge.where, *PATIENT, "-b", proxy.address)
    assert done.exit_code == OK, done.stderr
    ids = [{row["transactional_id"] for row in each.json()["data"]["rows"]} for each in (whole, done)]
    assert ids[0] == ids[1]
    assert merge.writer in ids[0]


def test_a_listing_of_offsets(lone_broker: Stack, invoke: Invoke, merge: Merge) -> None:
    with killed_at(lone_broker, Api.FETCH, 1) as proxy:
        done = invoke("offsets", "list", *merge.where, *PATIENT, "-b", proxy.address)
    assert done.exit_code in (OK, UNREACHABLE), done.stderr
    rows = done.json()["data"].get("rows", [])
    assert len(rows) == (merge.count if done.exit_code == OK else 0)
    again = invoke("offsets", "list", *merge.where, "-b", lone_broker.bootstrap_servers)
    assert (again.exit_code, len(again.json()["data"]["rows"])) == (OK, merge.count)
