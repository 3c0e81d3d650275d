"""What to fence, what to leave alone, and what an answer means."""

from __future__ import annotations

import pytest

from eosctl.core.ids import Owner, ProducerId, TransactionalId, WorkerId, owner_of, task_transactional_id
from eosctl.core.transactions import Coordinator, FenceAnswer, KafkaFault, TransactionDescription, TransactionState
from eosctl.errors import InputFileError
from eosctl.fence.rules import (
    FenceItem,
    FenceOutcome,
    LiveTask,
    after_answer,
    blocked_leaders,
    blocked_live,
    count_outcomes,
    may_be_prepared,
    newly_live,
    parse_id_lines,
    plan_items,
    read_back,
    unique_ids,
    without_answer,
)

BROKER = Coordinator(1, "b1", 9092)
W1, W2 = WorkerId("w1:8083"), WorkerId("w2:8083")
NOT_FOUND = KafkaFault(105, "TRANSACTIONAL_ID_NOT_FOUND")
DENIED = KafkaFault(53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
TIMED_OUT = KafkaFault(7, "REQUEST_TIMED_OUT", "no answer within 60 s")


def state_of(
    transactional_id: str,
    state: TransactionState = TransactionState.EMPTY,
    *,
    epoch: int = 3,
    timeout_ms: int = 60_000,
    producer_id: int = 7,
) -> TransactionDescription:
    return TransactionDescription(
        TransactionalId(transactional_id), BROKER, state, ProducerId(producer_id), epoch, timeout_ms, None, ()
    )


def held(*tasks: LiveTask) -> dict[TransactionalId, LiveTask]:
    """The ids of running tasks of group g."""
    return {task_transactional_id("g", task.connector, task.task): task for task in tasks}


def plan(
    described: dict[str, TransactionDescription | KafkaFault],
    *,
    group: str | None = "g",
    live: dict[TransactionalId, LiveTask] | None = None,
    create_unknown: bool = False,
) -> list[FenceItem]:
    by_id = {TransactionalId(name): state for name, state in described.items()}
    return plan_items(
        list(by_id),
        by_id,
        owner_of_id=lambda name: owner_of(name, group),
        live=live or {},
        create_unknown=create_unknown,
    )


@pytest.mark.parametrize(
    ("state", "create_unknown", "outcome"),
    [
        (state_of("x"), False, FenceOutcome.WOULD_FENCE),
        (NOT_FOUND, False, FenceOutcome.SKIPPED_UNKNOWN),
        (NOT_FOUND, True, FenceOutcome.WOULD_FENCE),
        (DENIED, False, FenceOutcome.FAILED),
        (DENIED, True, FenceOutcome.FAILED),
        (TIMED_OUT, True, FenceOutcome.FAILED),
    ],
)
def test_what_becomes_of_an_id(
    state: TransactionDescription | KafkaFault, create_unknown: bool, outcome: FenceOutcome
) -> None:
    (item,) = plan({"x": state}, create_unknown=create_unknown)
    assert item.outcome is outcome
    assert item.before == (state if isinstance(state, TransactionDescription) else None)
    assert item.coordinator == (BROKER if isinstance(state, TransactionDescription) else None)


@pytest.mark.parametrize("state", [state_of("g-c-0"), NOT_FOUND, DENIED])
def test_an_item_says_which_task_runs_under_its_id(state: TransactionDescription | KafkaFault) -> None:
    live = held(LiveTask("c", 0, W1))
    assert [item.live for item in plan({"g-c-0": state}, live=live)] == [LiveTask("c", 0, W1)]


def test_an_id_left_out_of_the_answer_is_failed_and_order_is_kept() -> None:
    items = plan_items(
        [TransactionalId("b"), TransactionalId("a")],
        {TransactionalId("a"): state_of("a")},
        owner_of_id=lambda _n: Owner("other"),
        live={},
        create_unknown=True,
    )
    assert [(item.transactional_id, item.outcome) for item in items] == [
        ("b", FenceOutcome.FAILED),
        ("a", FenceOutcome.WOULD_FENCE),
    ]
    fault = items[0].fault
    assert fault is not None
    assert (fault.code, fault.name) == (-1, "UNKNOWN_SERVER_ERROR")
    assert "does not mention this id" in fault.message


@pytest.mark.parametrize(
    ("transactional_id", "group", "blocked"),
    [
        ("connect-cluster-g", "g", True),
        ("connect-cluster-other", "g", True),
        ("connect-cluster-g", None, True),
        ("connect-cluster-x-0", "connect", True),  # task 0 of cluster-x, or the leader of group x-0
        ("g-c-0", "g", False),
        ("connect-c-0", "connect", False),
        ("anything", None, False),
    ],
)
def test_what_may_be_a_leader_is_blocked(transactional_id: str, group: str | None, blocked: bool) -> None:
    items = plan({transactional_id: state_of(transactional_id)}, group=group)
    assert bool(blocked_leaders(items)) is blocked


def test_a_leader_id_that_is_skipped_anyway_blocks_nothing() -> None:
    assert blocked_leaders(plan({"connect-cluster-g": NOT_FOUND})) == []


def test_live_tasks_block_their_ids_only() -> None:
    live = held(LiveTask("c", 0, W1), LiveTask("c", 2, W2))
    items = plan({"g-c-0": state_of("g-c-0"), "g-c-1": state_of("g-c-1"), "g-c-2": NOT_FOUND}, live=live)
    assert [item.live for item in blocked_live(items)] == [LiveTask("c", 0, W1)]


def test_a_task_that_starts_after_the_plan_makes_it_stale_but_one_known_before_does_not() -> None:
    before = held(LiveTask("c", 0, W1))
    items = plan({"g-c-0": state_of("g-c-0"), "g-c-1": state_of("g-c-1")}, live=before)
    now = held(LiveTask("c", 0, W1), LiveTask("c", 1, W1), LiveTask("c", 9, W1))
    assert newly_live(items, now) == [LiveTask("c", 1, W1)]


OPEN, IDLE = TransactionState.ONGOING, TransactionState.EMPTY


@pytest.mark.parametrize(
    ("transactional_id", "state", "connectors", "unseen", "prepared"),
    [
        ("job-0-7", OPEN, [], False, True),
        ("job-0-7", IDLE, [], False, False),
        ("job-0-7", IDLE, [], True, True),
        ("job-0-7", None, [], False, False),
        ("job-0-7", None, [], True, True),
        ("shop-1_2", OPEN, [], True, False),  # Kafka Streams commits in one phase
        ("g-c-0-1", OPEN, [], False, True),  # task 1 of a connector c-0, if there is one
        ("g-c-0-1", OPEN, ["c-0"], False, False),
        ("g-c-0-1", OPEN, ["c"], False, True),
        ("h-c-0-1", OPEN, ["c-0"], False, True),
    ],
)
def test_what_a_two_phase_commit_may_have_prepared(
    transactional_id: str, state: TransactionState | None, connectors: list[str], unseen: bool, prepared: bool
) -> None:
    described = NOT_FOUND if state is None else state_of(transactional_id, state)
    items = plan({transactional_id: described}, create_unknown=True)
    assert bool(may_be_prepared(items, connectors=connectors, unseen=unseen)) is prepared
    skipped = plan({transactional_id: DENIED})
    assert may_be_prepared(skipped, connectors=connectors, unseen=unseen) == [], "what is not fenced loses nothing"


@pytest.mark.parametrize(
    ("state", "timeout_ms", "fenced"),
    [
        (TransactionState.EMPTY, 30_000, True),
        (TransactionState.EMPTY, 60_000, False),  # a task's own mark
        (TransactionState.EMPTY, 90_000, False),  # Connect's
        (TransactionState.COMPLETE_COMMIT, 30_000, False),
        (TransactionState.ONGOING, 30_000, False),
    ],
)
def test_an_id_fenced_before_is_recognised_and_still_planned(
    state: TransactionState, timeout_ms: int, fenced: bool
) -> None:
    (item,) = plan({"x": state_of("x", state, timeout_ms=timeout_ms)})
    assert item.already_fenced is fenced
    assert item.outcome is FenceOutcome.WOULD_FENCE


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (FenceAnswer(TransactionalId("x"), BROKER, ProducerId(7), 4), FenceOutcome.FENCED),
        (FenceAnswer(TransactionalId("x"), BROKER, fault=DENIED), FenceOutcome.FAILED),
        (FenceAnswer(TransactionalId("x"), BROKER, fault=TIMED_OUT, confirmed=False), FenceOutcome.UNCONFIRMED),
        (FenceAnswer(TransactionalId("x"), None, fault=TIMED_OUT, confirmed=False, attempts=0), FenceOutcome.FAILED),
    ],
    ids=["fenced", "refused", "lost", "never sent"],
)
def test_what_an_answer_means(answer: FenceAnswer, outcome: FenceOutcome) -> None:
    (item,) = plan({"x": state_of("x")})
    after = after_answer(item, answer)
    assert after.outcome is outcome
    assert after.after == ((7, 4) if outcome is FenceOutcome.FENCED else None)
    assert after.fault == answer.fault
    assert after.before == item.before
    assert after.confirmed_by == ("answer" if outcome is FenceOutcome.FENCED else None)


def test_who_answered_is_the_coordinator_and_else_who_was_asked() -> None:
    (item,) = plan({"x": state_of("x")})
    moved = Coordinator(2, "b2", 9092)
    assert after_answer(item, FenceAnswer(TransactionalId("x"), moved, ProducerId(7), 4)).coordinator == moved
    assert after_answer(item, FenceAnswer(TransactionalId("x"), moved, fault=DENIED)).coordinator == moved
    assert (
        after_answer(item, FenceAnswer(TransactionalId("x"), None, fault=TIMED_OUT, confirmed=False)).coordinator
        == BROKER
    )


def test_a_fenced_item_still_says_which_task_ran() -> None:
    task = LiveTask("c", 0, W1)
    (item,) = plan({"g-c-0": state_of("g-c-0")}, live=held(task))
    assert after_answer(item, FenceAnswer(TransactionalId("g-c-0"), BROKER, ProducerId(7), 4)).live == task


@pytest.mark.parametrize(("producer_id", "epoch"), [(7, None), (None, 4), (None, None)])
def test_an_answer_without_an_epoch_fences_nothing(producer_id: ProducerId | None, epoch: int | None) -> None:
    (item,) = plan({"x": state_of("x")})
    unsure = after_answer(item, FenceAnswer(TransactionalId("x"), BROKER, producer_id, epoch, confirmed=False))
    assert unsure.outcome is FenceOutcome.UNCONFIRMED
    told = read_back(unsure, state_of("x")).fault
    assert told == KafkaFault(
        7, "REQUEST_TIMED_OUT", "no answer in time; now Empty, producer 7, epoch 3, timeout 60000 ms"
    )


@pytest.mark.parametrize(
    ("now", "outcome"),
    [
        (state_of("x", epoch=4, timeout_ms=30_000), FenceOutcome.FENCED),
        (state_of("x", epoch=0, producer_id=8, timeout_ms=30_000), FenceOutcome.FENCED),
        (state_of("x", epoch=4, timeout_ms=90_000), FenceOutcome.FENCED),  # by a round of Connect's
        (state_of("x", epoch=4, timeout_ms=1), FenceOutcome.FENCED),  # by one of a worker before 3.7.1
        (state_of("x", epoch=3, timeout_ms=90_000), FenceOutcome.UNCONFIRMED),  # by an older round
        (state_of("x", epoch=4), FenceOutcome.UNCONFIRMED),  # somebody else's timeout
        (state_of("x", epoch=3, timeout_ms=30_000), FenceOutcome.UNCONFIRMED),  # nothing moved
        (state_of("x", TransactionState.PREPARE_ABORT, epoch=4, timeout_ms=30_000), FenceOutcome.UNCONFIRMED),
        (TIMED_OUT, FenceOutcome.UNCONFIRMED),
        (None, FenceOutcome.UNCONFIRMED),
    ],
)
def test_a_lost_answer_is_claimed_only_when_the_coordinator_shows_our_mark(
    now: TransactionDescription | KafkaFault | None, outcome: FenceOutcome
) -> None:
    (planned,) = plan({"x": state_of("x")})
    item = read_back(without_answer(planned, TIMED_OUT), now)
    assert item.outcome is outcome
    assert item.confirmed_by == ("read_back" if outcome is FenceOutcome.FENCED else None)
    if outcome is FenceOutcome.UNCONFIRMED:
        assert item.fault is not None
        assert item.fault.name == "REQUEST_TIMED_OUT"


def test_ids_of_a_file() -> None:
    data = "a\n\n b \r\n# no comment\n   \nü-0".encode()
    assert parse_id_lines(data, source="f") == ["a", " b ", "# no comment", "ü-0"]
    assert parse_id_lines(b"", source="f") == []


def test_the_longest_id_that_kafka_takes() -> None:
    assert parse_id_lines(b"x" * 32_767, source="f") == ["x" * 32_767]
    with pytest.raises(InputFileError, match="f, line 1: 32768 bytes"):
        parse_id_lines(b"x" * 32_768, source="f")


def test_a_line_that_is_not_utf_8_is_named() -> None:
    with pytest.raises(InputFileError, match="f, line 2") as caught:
        parse_id_lines(b"ok\n\xff\n", source="f")
    assert caught.value.hint


def test_duplicates_go_and_order_stays() -> None:
    assert unique_ids(
        [TransactionalId("b"), TransactionalId("a"), TransactionalId("b"), TransactionalId("c"), TransactionalId("a")]
    ) == ["b", "a", "c"]


def test_counts_leave_out_what_did_not_happen() -> None:
    assert count_outcomes(plan({"a": state_of("a"), "b": NOT_FOUND, "c": NOT_FOUND})) == {
        "would_fence": 1,
        "skipped_unknown": 2,
    }
