"""`audit` held against the truth: sources of our own that are exactly-once, and that only say so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import OutRecord
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.sandbox.settings import GroupSpec
from eosctl.sandbox.stack import Stack
from tests.audit.proven import audited
from tests.conftest import Invoke
from tests.contract.clusters import RealProducer
from tests.offsets.test_offset_moves_live import delivered
from tests.sandbox_fixtures import (
    PAIR,
    PATIENCE_S,
    SLOW_SOURCE,
    added_group,
    group_flags,
    has_ended,
    mirror_config,
    rest,
    slow_config,
    wait_until,
)

pytestmark = pytest.mark.live
CHEATS = ("", "own-producer", "null-offsets", "twice", "skip")
DISABLED = "not-exactly-once"
ENOUGH = 40


@pytest.fixture(scope="module")
def ended(pair: Stack) -> Iterator[Mapping[str, str]]:
    """Cheat -> a connector that has written and is stopped; they run side by side, each with two tasks.

    One is created after the other: Connect may start a task in the rebalance of another connector just before it sees
    that task's configs, then stops it, and waits a minute for a task that waits for that very thread to be fenced.
    """
    url = pair.urls(PAIR)[0]
    names = {cheat: f"audited-{cheat or 'honest'}" for cheat in CHEATS}
    try:
        for cheat, name in names.items():
            more = {"cheat": cheat, "own.brokers": pair.bootstrap_servers}
            rest(f"{url}/connectors/{name}/config", "PUT", slow_config(f"topic-{name}", tasks=2, poll_ms=300, **more))
            # the first rebalances of a group may take a minute each
            wait_until(lambda name=name: _is_running(url, name), what=f"{name} to run", timeout_s=3 * PATIENCE_S)  # type: ignore[misc]
        for name in names.values():
            delivered(pair, f"topic-{name}", ENOUGH)
        for name in names.values():
            rest(f"{url}/connectors/{name}/stop", "PUT")
        for name in names.values():
            wait_until(lambda name=name: has_ended(rest(f"{url}/connectors/{name}/status")), what=f"{name} to stop")  # type: ignore[misc]
        yield names
    finally:
        for name in set(rest(f"{url}/connectors")) & set(names.values()):
            rest(f"{url}/connectors/{name}", "DELETE")


def _is_running(url: str, name: str) -> bool:
    return [task["state"] for task in rest(f"{url}/connectors/{name}/status")["tasks"]] == ["RUNNING"] * 2


@pytest.mark.parametrize(
    ("cheat", "codes"),
    [
        ("", set()),
        ("own-producer", {"batch_not_transactional"}),
        ("null-offsets", {"transaction_without_offsets"}),
        ("twice", set()),
        ("skip", set()),
    ],
)
def test_a_source_is_what_its_log_says(
    pair: Stack, invoke: Invoke, ended: Mapping[str, str], cheat: str, codes: set[str]
) -> None:
    """Each of them answers `exactlyOnceSupport` with SUPPORTED, and each of its tasks is RUNNING."""
    done = audited(invoke, group_flags(pair, PAIR), ended[cheat])
    assert done.codes - {"transaction_aborted"} == codes
    assert done.verdict == ("not_exactly_once" if codes else "exactly_once")
    assert {each["identified_by"] for each in done.connector["producers"] if each["owner"] == "task"} == {"coordinator"}
    assert done.connector["records"] >= ENOUGH
    assert done.connector["transactions"]["committed"] >= ENOUGH / 5 / 2


@pytest.mark.parametrize(("cheat", "codes"), [("", set()), ("twice", {"duplicate"}), ("skip", {"gap"})])
def test_what_only_records_show(
    pair: Stack, invoke: Invoke, ended: Mapping[str, str], cheat: str, codes: set[str]
) -> None:
    """Their transactions are perfect, and what is in them is not."""
    done = audited(invoke, group_flags(pair, PAIR), ended[cheat], "--sequence", "value")
    assert done.codes & {"duplicate", "gap"} == codes


def test_a_worker_that_is_not_enabled_is_found_out(pair: Stack, invoke: Invoke) -> None:
    """The source is an honest one: who is not exactly-once is its worker."""
    config = {"plugin.path": str(SLOW_SOURCE), "offset.flush.interval.ms": "500"}
    with added_group(pair, GroupSpec(DISABLED, (Mode.DISABLED,), worker_config=config)) as (url,):
        rest(f"{url}/connectors/plain/config", "PUT", slow_config("topic-plain", tasks=1, poll_ms=300))
        delivered(pair, "topic-plain", ENOUGH)
        rest(f"{url}/connectors/plain/stop", "PUT")
        wait_until(lambda: has_ended(rest(f"{url}/connectors/plain/status")), what="it to stop")
        done = audited(invoke, group_flags(pair, DISABLED), "plain")
    assert done.codes == {"batch_not_transactional", "offsets_without_transaction"}
    assert done.verdict == "not_exactly_once"


@pytest.mark.parametrize(("cheat", "verdict"), [("", "exactly_once"), ("null-offsets", "not_exactly_once")])
def test_of_brokers_that_do_not_raise_epochs_the_times_of_markers_tell(
    old_stack: Stack, invoke: Invoke, unique: str, cheat: str, verdict: str
) -> None:
    """The transactions of a task share an epoch there, and go to several partitions.

    They are half a second apart: the markers of one must come well before the next one's, also beside other work.
    """
    config = {"plugin.path": str(SLOW_SOURCE), "offset.flush.interval.ms": "500"}
    topic, group = f"topic-{unique}", GroupSpec(unique, (Mode.ENABLED,), worker_config=config)
    with KafkaTopicClient(
        ClientSettings((old_stack.bootstrap_servers,)), deadline=Deadline.after(PATIENCE_S)
    ) as topics:
        topics.create(topic, partitions=3, replication_factor=1, config={})
    with added_group(old_stack, group) as (url,):
        more = {"cheat": cheat, "own.brokers": old_stack.bootstrap_servers}
        rest(f"{url}/connectors/{unique}/config", "PUT", slow_config(topic, tasks=2, poll_ms=500, **more))
        delivered(old_stack, topic, 2 * ENOUGH)
        rest(f"{url}/connectors/{unique}/stop", "PUT")
        wait_until(lambda: has_ended(rest(f"{url}/connectors/{unique}/status")), what="it to stop")
        done = audited(invoke, group_flags(old_stack, unique), unique)
    assert done.verdict == verdict, (done.connector["why"], done.rows)


@pytest.mark.parametrize(
    ("isolation", "copied", "codes"), [("read_committed", 4, set()), ("read_uncommitted", 6, {"mirror_duplicate"})]
)
def test_a_mirror_is_compared_with_its_source(
    pair: Stack, invoke: Invoke, unique: str, isolation: str, copied: int, codes: set[str]
) -> None:
    """MirrorSourceConnector copies aborted records too, unless its consumer is told otherwise."""
    url, alias = pair.urls(PAIR)[0], f"A-{unique}"
    settings = ClientSettings((pair.bootstrap_servers,))
    with KafkaTopicClient(settings, deadline=Deadline.after(PATIENCE_S)) as topics:
        topics.create(unique, partitions=1, replication_factor=1, config={})
        topics.write([OutRecord(unique, b"k", b"v", 0)] * 2)
        aborted = RealProducer(pair.bootstrap_servers, f"{unique}-writer")
        for _ in range(2):
            aborted.send(unique, 0, b"k")
        aborted.abort()
        topics.write([OutRecord(unique, b"k", b"v", 0)] * 2)
    config = mirror_config(pair.bootstrap_servers, [unique], tasks=1)
    more = {"source.cluster.alias": alias, "consumer.isolation.level": isolation}
    rest(f"{url}/connectors/{unique}/config", "PUT", {**config, **more})
    try:
        delivered(pair, f"{alias}.{unique}", copied)
        done = audited(invoke, group_flags(pair, PAIR), unique)
        assert (done.codes - {"transaction_aborted", "transaction_open"}, done.connector["topics"]) == (
            codes,
            [f"{alias}.{unique}"],
        )
        assert done.verdict == ("not_exactly_once" if codes else "exactly_once")
    finally:
        rest(f"{url}/connectors/{unique}", "DELETE")
