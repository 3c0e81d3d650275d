"""Each alert of `eosctl exporter rules` fires on a real Prometheus when its incident is made, and resolves when healed.

Promtool alone judges (tests/exporter) EosctlCollectionStale, which needs a look that takes longer than five intervals
and a minute, EosctlCollectionIncomplete, and EosctlNoWorker, for which all of the game's workers would have to go. The
tests share one exporter, and run in this order: what takes the broker away comes last.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import Producer

from eosctl.collect.looks import prefix_of
from eosctl.core.ids import TransactionalId, task_transactional_id
from eosctl.core.workers.modes import Mode
from eosctl.sandbox.downloads.jars import cache_dir
from eosctl.sandbox.operations import Zombie
from eosctl.sandbox.servers import process
from eosctl.sandbox.stack import Stack
from tests.gameday.ground import Ground
from tests.gameday.test_workers_live import last_worker
from tests.gameday.watching import Watching, watched
from tests.hanging_transactions import unverified_transactions, write_in_a_transaction_that_no_coordinator_knows
from tests.prometheus.promtool import Promtool
from tests.prometheus.server import Prometheus
from tests.sandbox_fixtures import PATIENCE_S, FileSource, rest, wait_until

pytestmark = pytest.mark.live


@pytest.fixture
def watching(ground: Ground, prometheus: Prometheus) -> Iterator[Watching]:
    with watched(ground, prometheus, cache_dir(os.environ) / "ports") as started:
        yield started


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")  # kafka-python, when imported
def test_transactions(watching: Watching, ground: Ground, unique: str, promtool: Promtool) -> None:
    """One that hangs, one near its timeout, aborted ones, and a source that writes no offset."""
    with ground.source(unique) as source:
        with unverified_transactions(ground.stack):
            wait_until(
                lambda: write_in_a_transaction_that_no_coordinator_knows(
                    ground.stack, source.topic, producer_id=987_654_321
                ),
                what="the broker to take the batch",
            )
        with watching.fires(
            "EosctlFindings", code="hanging_transaction"
        ):  # doctor looks rarely: much is done meanwhile
            with (
                watching.fires("EosctlHangingTransaction", topic=source.topic, partition="0", severity="critical"),
                watching.fires("EosctlLastStableOffsetStuck", topic=source.topic, kind="output"),
            ):
                _lint(watching, promtool)
                ground.eosctl("txn", "abort", "--hanging")
            _near_its_timeout(watching, ground, source)
            with watching.fires("EosctlOffsetsNotMoving", connector=unique):
                source.append("two")
            source.stop_and_wait()
            _abort_again_and_again(watching, ground, source)
            with watching.fires("EosctlTransactionsAborted", connector=unique):
                pass
        source.set_state("resume")


def _near_its_timeout(watching: Watching, ground: Ground, source: FileSource) -> None:
    stranger = TransactionalId(f"{source.name}-stranger")
    servers = ground.stack.bootstrap_servers
    with (
        Zombie(servers, stranger, topic=source.topic, record=b"open", timeout_ms=20_000),
        watching.fires("EosctlTransactionNearTimeout", transactional_id=f"{prefix_of(stranger)}*"),
    ):
        ground.eosctl("fence", stranger)


def _abort_again_and_again(watching: Watching, ground: Ground, source: FileSource) -> None:
    """Under the id of the task, as a task does that fails; each abort is seen before the next one begins."""
    settings = {
        "bootstrap.servers": ground.stack.bootstrap_servers,
        "transactional.id": task_transactional_id(ground.group, source.name, 0),
        "enable.metrics.push": False,
    }
    producer = Producer(settings)
    producer.init_transactions(PATIENCE_S)
    query = f'eosctl_transactions_aborted_total{{connector="{source.name}"}}'
    for count in (1, 2, 3):
        producer.begin_transaction()
        producer.produce(source.topic, b"again")
        producer.flush(PATIENCE_S)
        producer.abort_transaction(PATIENCE_S)

        def is_seen(wanted: int = count) -> bool:
            return sum(watching.prometheus.query(query).values()) >= wanted

        wait_until(is_seen, what=f"abort {count} to be seen")


def _lint(watching: Watching, promtool: Promtool) -> None:
    """The real exposition, while there is much to expose."""
    import urllib.request

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{watching.port}/metrics", timeout=PATIENCE_S) as answer:
        text = answer.read().decode()
    done = promtool("check", "metrics", input=text)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_fencing_that_takes_too_long(watching: Watching, ground: Ground, unique: str) -> None:
    with ground.source(unique) as source:
        source.put(**{"admin.override.retry.backoff.max.ms": "40000"})
        with watching.fires("EosctlFencingTooLong", connector=unique):
            source.put(**{"admin.override.retry.backoff.max.ms": "10"})


def test_a_worker_that_is_killed_and_comes_back_in_another_mode(
    watching: Watching, ground: Ground, unique: str
) -> None:
    worker = last_worker(ground)
    process.signal_group(worker.process, signal.SIGKILL)
    with watching.fires("EosctlWorkerDown", worker=worker.address):
        ground.stack.start_node(worker.name, mode=Mode.DISABLED)
    with ExitStack() as stack:
        for number in (1, 2):
            _started(stack, ground, f"{unique}-{number}")
        with (
            watching.fires("EosctlMixedModes"),
            watching.fires("EosctlTaskWithoutTransaction", severity="critical"),
        ):
            ground.stack.restart_node(worker.name, mode=Mode.ENABLED)


def _started(stack: ExitStack, ground: Ground, name: str) -> None:
    """A source that may not get as far as an offset: its worker, or the leader, is not enabled."""
    path = ground.folder / f"{name}.txt"
    path.write_text("one\n")
    FileSource(ground.urls[0], name, path, f"topic-{name}").put()
    stack.callback(rest, f"{ground.urls[0]}/connectors/{name}", "DELETE")


def test_an_exporter_that_is_blind(watching: Watching, ground: Ground, game_stack: Stack) -> None:
    broker = game_stack.node("broker-1")
    process.signal_group(broker.process, signal.SIGKILL)
    try:
        with watching.fires("EosctlKafkaUnreachable"), watching.fires("EosctlCollectionFailing", source="group"):
            game_stack.start_node(broker.name)
    finally:
        if not game_stack.node("broker-1").process.alive():
            game_stack.start_node(broker.name)
    assert watching.stop() == 0
    with watching.fires("EosctlExporterDown"):
        watching.start()
    ground.wait_until_quiet()
