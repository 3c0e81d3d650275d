"""What each source makes of a cluster over several looks: what it counts, and since when."""

from __future__ import annotations

from pathlib import Path

import pytest

from eosctl.checks import codes
from eosctl.checks.ignored import IgnoredFinding
from eosctl.collect import looks as transactions
from eosctl.collect import topics as offsets
from eosctl.collect.facts import (
    ConnectorFacts,
    DoctorFacts,
    GroupFacts,
    HangingFacts,
    KafkaFacts,
    LsoFacts,
    OffsetFacts,
    TopicFacts,
    TransactionFacts,
    unseen_parts,
)
from eosctl.collect.looks import DoctorLook, prefix_of
from eosctl.collect.overview import Collected, Overview
from eosctl.collect.topics import NAMES_EVERY, connector_of
from eosctl.core.findings import Finding
from eosctl.core.ids import TransactionalId
from eosctl.core.offsets.records import OffsetKey, decode_key
from eosctl.core.records import LogDir
from eosctl.errors import UnauthorizedError, UnreachableError
from eosctl.exporter.samples import workers
from eosctl.wire.error_codes import CLUSTER_AUTHORIZATION_FAILED
from tests.collect.scene import CONFIG_TOPIC, app_of, config_records, created, group, source_of
from tests.collect.watched import Watched
from tests.fakes.doctor_scene import OFFSETS, W1
from tests.fakes.faults import EVERY


def test_silent_brokers(watched: Watched) -> None:
    watched.look("kafka")
    known = watched.facts(KafkaFacts)
    assert (known.cluster_id, known.silent) == ("cluster-1", ())
    watched.world.brokers.stop_broker(2, noticed=False)
    watched.look("kafka")
    assert watched.facts(KafkaFacts).silent == (2,)


def test_the_disks_of_brokers_that_answer_are_seen_and_of_those_that_refuse_are_not(watched: Watched) -> None:
    brokers = watched.world.brokers
    full = (LogDir("/full", total_bytes=100, usable_bytes=1), LogDir("/gone", is_offline=True))
    brokers.state.log_dirs[1] = full
    for other in (2, 3):
        brokers.stop_broker(other, noticed=False)
    watched.look("kafka")
    seen = watched.facts(KafkaFacts)
    assert (seen.log_dirs, unseen_parts(seen)) == ({1: full}, 2)
    brokers.fail_next("DescribeLogDirs", CLUSTER_AUTHORIZATION_FAILED)
    watched.look("kafka")
    refused = watched.facts(KafkaFacts)
    assert (refused.log_dirs, refused.disks_unread, unseen_parts(refused)) == ({}, 1, 3)
    brokers.versions["DescribeLogDirs"] = (-1, -1)
    watched.look("kafka")
    assert unseen_parts(watched.facts(KafkaFacts)) == 2  # an old broker has nothing to report


def open_one(watched: Watched, transactional_id: str) -> int:
    return watched.world.brokers.state.open_transaction(transactional_id, (OFFSETS, 0))


def test_since_when_an_end_is_decided_and_not_written(watched: Watched) -> None:
    open_one(watched, "g-orders-0")
    known = watched.world.brokers.state.transactions["g-orders-0"]

    def since() -> int | None:
        watched.look("transactions")
        [only] = watched.facts(TransactionFacts).open
        return only.ending_since_ms

    assert since() is None
    known.state, known.looks_left = "PrepareCommit", 10**9
    first_ms = since()
    assert first_ms == watched.world.clock().now_ms()
    watched.world.time.now_s += 90
    assert since() == first_ms
    known.started_ms += 1  # another transaction of the id
    again_ms = since()
    assert again_ms == watched.world.clock().now_ms() > first_ms


def test_open_transactions_by_owner(watched: Watched) -> None:
    began_ms = watched.world.clock().now_ms()
    open_one(watched, "g-orders-0")
    watched.look("group")
    open_one(watched, "somebody")
    watched.look("transactions")
    first, second = watched.facts(TransactionFacts).open
    assert (first.transactional_id, first.owner.kind, first.owner.connector) == ("g-orders-0", "task", "orders")
    assert (first.started_ms, first.topics) == (began_ms, (OFFSETS,))
    assert (second.transactional_id, second.owner.kind) == ("somebody", "other")
    assert first.open_s(began_ms + 90_000) == 90.0


def test_aborts_are_counted_once_and_not_those_before(watched: Watched) -> None:
    """Each by its own start: an id may abort again and again."""
    state = watched.world.brokers.state
    open_one(watched, "g-orders-0")
    state.expire("g-orders-0")
    watched.look("transactions")
    assert watched.facts(TransactionFacts).aborted == {}
    for expected in (1, 2):
        watched.world.time.pass_until(watched.world.time.now_s + 1)
        open_one(watched, "g-orders-0")
        state.expire("g-orders-0")
        for _ in range(2):
            watched.look("transactions")
            assert watched.facts(TransactionFacts).aborted == {"orders": expected}


def test_aborts_that_come_back_with_their_coordinator_are_not_new(watched: Watched) -> None:
    """A broker that restarts would else look like many failures at once."""
    state = watched.world.brokers.state
    open_one(watched, "g-orders-0")
    state.expire("g-orders-0")
    watched.look("transactions")
    hidden = state.transactions.pop("g-orders-0")
    watched.look("transactions")
    state.transactions["g-orders-0"] = hidden
    watched.look("transactions")
    assert watched.facts(TransactionFacts).aborted == {}


def test_an_abort_of_long_ago_is_not_new(watched: Watched) -> None:
    """Its coordinator could not be asked at the first look."""
    state = watched.world.brokers.state
    open_one(watched, "g-orders-0")
    state.expire("g-orders-0")
    hidden = state.transactions.pop("g-orders-0")
    watched.world.time.pass_until(watched.world.time.now_s + 3_600)
    watched.look("transactions")
    state.transactions["g-orders-0"] = hidden
    watched.look("transactions")
    assert watched.facts(TransactionFacts).aborted == {}


def test_an_lso_that_stands_still(watched: Watched) -> None:
    watched.look("topics")
    assert [(each.topic, each.kind, each.behind) for each in watched.facts(LsoFacts).topics] == [
        (OFFSETS, "offsets", 0),
        (CONFIG_TOPIC, "config", 0),
    ]
    watched.world.topics.open_transaction(OFFSETS, 3)
    watched.look("topics")
    since_ms = watched.world.clock().now_ms()
    assert of_offsets(watched).stuck_since_ms is None  # it has just been seen there
    for _ in range(2):
        watched.look("topics")
        there = of_offsets(watched)
        assert (there.behind, there.partitions_behind, there.stuck_since_ms) == (1, 1, since_ms)
    watched.world.topics.close_transaction(OFFSETS, 3)
    watched.look("topics")
    assert (of_offsets(watched).behind, of_offsets(watched).stuck_since_ms) == (0, None)


def of_offsets(watched: Watched) -> TopicFacts:
    return next(each for each in watched.facts(LsoFacts).topics if each.topic == OFFSETS)


def test_offsets_are_followed(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each record is read once, some partitions at a time, and all of them again in a topic recreated."""
    monkeypatch.setattr(offsets, "PIECE", 2)
    put = watched.world.topics.put
    for number in range(9):
        put(OFFSETS, f'["orders",{{"n":{number}}}]'.encode(), b"{}")
    watched.look("offsets")
    newest_ms = watched.facts(OffsetFacts).newest_ms["orders"]
    assert watched.facts(OffsetFacts).records == 9
    watched.look("offsets")
    put(OFFSETS, b'["caf\xc3\xa9",{"n":1}]', b"{}")
    put(OFFSETS, b"nonsense", b"{}")
    watched.look("offsets")
    facts = watched.facts(OffsetFacts)
    assert (facts.records, facts.restarts, set(facts.newest_ms)) == (11, 0, {"orders", "café"})
    assert facts.newest_ms["orders"] == newest_ms
    del watched.world.topics.topics[OFFSETS]
    watched.world.topics.add_topic(OFFSETS, 25)
    put(OFFSETS, b'["orders",{"n":1}]', b"{}")
    watched.look("offsets")
    assert (watched.facts(OffsetFacts).records, watched.facts(OffsetFacts).restarts) == (12, 1)


KEYS = [
    *(b'["a",{"b":1}]', b'["a\\"b",{}]', b'["a\\u00e9",{}]', '["é",{}]'.encode(), b'["a",null]', b'["",{}]'),
    *(b"[1,{}]", b'["a"]', b"", None, b'[ "a", {}]', b'["\xff",{}]', b'["a\nb",{}]'),
]


@pytest.mark.parametrize("key", KEYS)
def test_the_quick_way_to_a_keys_connector_is_the_rule(key: bytes | None) -> None:
    decoded = decode_key(key)
    assert connector_of(key) == (decoded.connector if isinstance(decoded, OffsetKey) else None)


def of_orders(watched: Watched) -> ConnectorFacts:
    (found,) = watched.facts(GroupFacts).connectors or ()
    return found


def test_a_task_without_a_transaction(tmp_path: Path) -> None:
    """Since when it is seen; it is none once a coordinator knows its id."""
    watched = Watched(tmp_path, known_ids=["connect-cluster-g"])
    watched.look("group")
    since_ms = of_orders(watched).without_transaction[0]
    watched.look("group")
    assert of_orders(watched).without_transaction == {0: since_ms}
    watched.world.brokers.state.init_producer_id("g-orders-0", 60_000)
    watched.look("group")
    assert of_orders(watched).without_transaction == {}


def test_fencing_that_is_due(tmp_path: Path) -> None:
    """The commit is newer than the record: tasks wait until the recorded ones are fenced."""
    due = Watched(tmp_path, records=config_records(*created("orders", 1)))
    due.look("group")
    assert of_orders(due).fencing_due
    assert of_orders(due).fencing_s == 1.0
    done = Watched(tmp_path)
    done.look("group")
    assert not of_orders(done).fencing_due


def test_workers_and_their_modes(watched: Watched) -> None:
    watched.look("group")
    (worker,) = watched.facts(GroupFacts).workers
    assert (worker.name, worker.mode, worker.up, worker.leader) == (W1, "enabled", True, True)


def test_nothing_hangs(watched: Watched) -> None:
    watched.look("hanging")
    assert watched.facts(HangingFacts).hanging == ()
    assert watched.facts(HangingFacts).partitions > 25


def test_a_healthy_group_has_nothing_unseen(watched: Watched) -> None:
    """Else the alert about it would never be quiet: what nobody asked for is not missed."""
    watched.look("group")
    assert watched.facts(GroupFacts).unseen == {}


def test_a_worker_that_hangs_holds_up_no_last_stable_offset(watched: Watched) -> None:
    """Its group's topics are asked about all the same, and the names that it told before are kept."""
    watched.world.connect.connectors["orders"].topics.add("lines")
    watched.world.topics.add_topic("lines", 1)
    watched.look("topics")
    assert "lines" in [each.topic for each in watched.facts(LsoFacts).topics]
    watched.world.connect.frozen.add(W1)
    for _ in range(NAMES_EVERY + 1):
        watched.look("topics")
    assert {each.topic for each in watched.facts(LsoFacts).topics} == {OFFSETS, CONFIG_TOPIC, "lines"}


def test_what_a_check_found_stays_while_it_cannot_run(watched: Watched) -> None:
    """A broker that goes away in the middle of a look takes no finding off the screen."""
    watched.world.connect.connectors["orders"].tasks[0].state = "FAILED"
    watched.look("doctor")
    found = watched.facts(DoctorFacts)
    assert "orders" in {each.subject.partition("/")[0] for each in found.findings}

    def gone(_call: object) -> None:
        raise UnreachableError("no worker answers")

    watched.world.connect.before(EVERY, gone)
    watched.look("doctor")
    kept = watched.facts(DoctorFacts)
    assert set(kept.not_checked) > set(found.not_checked)
    assert all(each in kept.findings for each in found.findings)


def test_names_are_asked_for_again_after_a_failed_start(watched: Watched) -> None:
    """Brokers that come up after the exporter: its topics must not be unseen for ten looks."""
    watched.world.connect.connectors["orders"].topics.add("lines")
    watched.world.topics.add_topic("lines", 1)
    away = True

    def gone(_call: object) -> None:
        if away:
            raise UnreachableError("no broker answers")

    watched.world.topics.before(EVERY, gone)
    watched.world.connect.before(EVERY, gone)
    watched.collector.look(source_of(watched.collector, "topics"))
    assert watched.collector.overview().error("topics") is not None
    away = False
    watched.look("topics")
    assert "lines" in [each.topic for each in watched.facts(LsoFacts).topics]


@pytest.mark.parametrize(("ignore", "stays"), [([], True), ([IgnoredFinding("not_checked", "transactions")], False)])
def test_a_finding_goes_with_its_check_where_that_is_accepted(
    ignore: list[IgnoredFinding], stays: bool, tmp_path: Path
) -> None:
    """`--ignore not_checked:CHECK`: nobody says any more that it is not known, so it would stand there for ever."""
    app = app_of(group(faults={"topic_partitions": UnauthorizedError("not allowed")}), tmp_path)
    old = Finding(codes.HANGING_TRANSACTION, "error", "lines-0", "hangs", "Abort it.")
    now_ms = app.clock.now_ms()
    seen = Collected("doctor", 600.0, 120.0, DoctorFacts((old,), by_check={"transactions": (old,)}), now_ms)
    facts = DoctorLook(tuple(ignore))(app, Overview(now_ms, now_ms, collected={"doctor": seen}))
    assert ("transactions" in facts.not_checked, old in facts.findings) == (stays, stays)


def test_a_url_without_a_member_is_no_worker_of_the_group(watched: Watched) -> None:
    """Else a group whose workers are all gone would have one for ever, and nobody would be told."""
    watched.look("group")
    assert workers(watched.collector.overview(), 50) != []
    watched.world.connect.stop_worker(W1)
    watched.look("group")
    assert [each.name for each in watched.facts(GroupFacts).workers] == [W1]
    assert list(workers(watched.collector.overview(), 50)) == []


def test_a_task_that_may_only_be_idle_is_not_without_transactions(tmp_path: Path) -> None:
    """Brokers forget the id of an exactly-once task that was idle for a week: the exporter paged for it."""
    watched = Watched(tmp_path, known_ids=["connect-cluster-g"])
    watched.world.time.pass_until(watched.world.time.now_s + 8 * 86_400)
    watched.look("group")
    assert of_orders(watched).without_transaction == {}


def test_a_task_of_a_group_that_is_not_exactly_once_is_as_it_has_to_be(tmp_path: Path) -> None:
    watched = Watched(tmp_path, known_ids=[], modes={W1: "disabled"})
    watched.look("group")
    assert of_orders(watched).without_transaction == {}


def test_an_open_transaction_that_can_not_be_described_is_unseen(watched: Watched) -> None:
    """It was left out without a word."""
    for name in ("g-orders-0", "somebody"):
        open_one(watched, name)
    brokers = watched.world.brokers
    brokers.calls.before("describe_transactions", lambda _call: brokers.deny_describe.add("somebody"))
    watched.look("transactions")
    facts = watched.facts(TransactionFacts)
    assert ([each.transactional_id for each in facts.open], facts.unasked) == (["g-orders-0"], 1)


@pytest.mark.parametrize(
    ("transactional_id", "prefix"),
    [
        ("sink-3-1234", "sink"),
        ("app-0f8fad5b-d9cb-469f-a165-70867728950e-2", "app"),
        ("app-1_7", "app"),
        ("tx-12", "tx"),
        ("payments-worker-7f9c2b", "payments-worker-"),
        ("payments-worker-x8d01a", "payments-worker-"),
        ("0f8fad5b-d9cb", ""),
        ("somebody", ""),
    ],
)
def test_what_ids_of_one_application_share(transactional_id: str, prefix: str) -> None:
    """And no other id has a say in it: a series keeps its name."""
    assert prefix_of(TransactionalId(transactional_id)) == prefix


def test_prefixes_are_bounded_over_time(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones keep theirs; all that come later share the empty one."""
    monkeypatch.setattr(transactions, "MOST_PREFIXES", 2)
    open_one(watched, "g-orders-0")
    watched.look("group")
    for name in ("a-1", "b-1", "c-1"):
        open_one(watched, name)
        watched.look("transactions")
    open_one(watched, "a-2")
    watched.look("transactions")
    found = {each.transactional_id: each.prefix for each in watched.facts(TransactionFacts).open}
    assert found == {"g-orders-0": None, "a-1": "a", "b-1": "b", "c-1": "", "a-2": "a"}


def test_aborts_of_too_many_connectors_are_counted_together(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones keep their series, and the sum of the others never goes back."""
    monkeypatch.setattr(transactions, "MOST_ABORTING", 2)
    state = watched.world.brokers.state
    watched.look("transactions")
    for name in ("g-a-0", "g-b-0", "g-c-0", "g-c-0", "g-a-0"):
        watched.world.time.pass_until(watched.world.time.now_s + 1)
        open_one(watched, name)
        state.expire(name)
        watched.look("transactions")
    assert watched.facts(TransactionFacts).aborted == {"a": 2, "b": 1, "": 2}
