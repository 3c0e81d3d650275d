"""Rows, problems and the exit code of `fence`, of items that are made up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from eosctl.app import App
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import Owner, ProducerId, TransactionalId, WorkerId
from eosctl.core.transactions import Coordinator, KafkaFault, TransactionDescription, TransactionState
from eosctl.deadline import Clock, Deadline
from eosctl.errors import ExitCode
from eosctl.fence.rows import FENCE_PLAN, FENCE_RESULT, FenceSummary, fence_report, fence_row
from eosctl.fence.rules import FenceItem, FenceOutcome, LiveTask
from eosctl.output.rows import KafkaError, Kind
from eosctl.report import Report, plain
from eosctl.target import Target
from eosctl.txn.owners import AUTHORIZATION_CODES, UNREACHABLE_CODES, exit_code_of_faults

BROKER = Coordinator(3, "b3", 9092)
DENIED = KafkaFault(53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
LOST = KafkaFault(7, "REQUEST_TIMED_OUT", "no answer within 60 s")
BEFORE = TransactionDescription(
    TransactionalId("g-c-0"), BROKER, TransactionState.ONGOING, ProducerId(7), 3, 60_000, 900, (("t", 0),)
)
CLOCK = Clock(now_s=lambda: 1.0, monotonic_s=lambda: 0.0, sleep_s=lambda _s: None)


def item(
    outcome: FenceOutcome, fault: KafkaFault | None = None, *, known: bool = True, name: str = "g-c-0"
) -> FenceItem:
    """An id of task 0 of `c`; `known` where its coordinator could describe it."""
    before, coordinator = (BEFORE, BROKER) if known else (None, None)
    return FenceItem(
        TransactionalId(name), Owner("task", "c", 0), outcome, before=before, coordinator=coordinator, fault=fault
    )


def report_of(*items: FenceItem, kind: Kind = FENCE_RESULT) -> Report:
    target = Target(client=ClientSettings(("b:9092",), sasl_username="alice"), group_id="g")
    app = App(target, Deadline.after(60, CLOCK), Path("unused"), clock=CLOCK)
    return fence_report(app, kind, items, cluster_id="k", problems=())


def test_a_row_says_who_had_the_id_before_and_has_it_after() -> None:
    fenced = FenceItem(
        TransactionalId("g-c-0"),
        Owner("task", "c", 0),
        FenceOutcome.FENCED,
        before=BEFORE,
        live=LiveTask("c", 0, WorkerId("w1:8083")),
        coordinator=BROKER,
        after=(ProducerId(7), 4),
        confirmed_by="answer",
    )
    assert plain(fence_row(fenced, now_ms=1_000)) == {
        "transactional_id": "g-c-0",
        "coordinator": 3,
        "owner": {"kind": "task", "connector": "c", "task": 0, "application": None},
        "before": {
            "state": "Ongoing",
            "producer_id": 7,
            "producer_epoch": 3,
            "transaction_timeout_ms": 60_000,
            "age_ms": 100,
        },
        "after": {"producer_id": 7, "producer_epoch": 4},
        "outcome": "fenced",
        "confirmed_by": "answer",
        "already_fenced": False,
        "live": {"worker": "w1:8083"},
        "error": None,
    }


def test_a_row_of_an_id_that_nobody_could_ask_for() -> None:
    failed = fence_row(item(FenceOutcome.FAILED, DENIED, known=False), now_ms=1_000)
    assert [failed.coordinator, failed.before, failed.after, failed.live] == [None] * 4
    assert failed.error == KafkaError(code=DENIED.name, kafka_code=53, message=DENIED.name)


def test_a_transaction_from_a_clock_that_is_ahead_began_just_now() -> None:
    before = fence_row(item(FenceOutcome.FENCED), now_ms=0).before  # it began at 900
    assert before is not None
    assert before.age_ms == 0


def test_a_report_counts() -> None:
    report = report_of(
        item(FenceOutcome.FENCED),
        FenceItem(
            TransactionalId("g-c-1"),
            Owner("other"),
            FenceOutcome.SKIPPED_UNKNOWN,
            live=LiveTask("c", 1, WorkerId("w1")),
        ),
        item(FenceOutcome.FENCED),
    )
    counts = {"fenced": 2, "skipped_unknown": 1}
    assert report.rows[0] == fence_row(item(FenceOutcome.FENCED), now_ms=1_000)
    assert report.summary == FenceSummary(ids=3, counts=counts, already_fenced=0, live=1)
    assert report.target == {"kafka_cluster_id": "k", "group_id": "g"}
    assert (len(report.rows), report.problems) == (3, ())
    assert [row.transactional_id for row in report.rows] == ["g-c-0", "g-c-1", "g-c-0"]
    assert list(report.rows[:2]) == [report.rows[0], report.rows[1]]


@pytest.mark.parametrize(
    ("items", "exit_code"),
    [
        ([item(FenceOutcome.FENCED), item(FenceOutcome.SKIPPED_UNKNOWN)], ExitCode.OK),
        ([item(FenceOutcome.WOULD_FENCE), item(FenceOutcome.FAILED, DENIED)], ExitCode.PARTIAL),
        ([item(FenceOutcome.FENCED), item(FenceOutcome.UNCONFIRMED, LOST)], ExitCode.PARTIAL),
        ([item(FenceOutcome.SKIPPED_UNKNOWN), item(FenceOutcome.FAILED, DENIED)], ExitCode.UNAUTHORIZED),
        ([item(FenceOutcome.UNCONFIRMED, LOST)], ExitCode.UNREACHABLE),
        ([item(FenceOutcome.UNCONFIRMED)], ExitCode.FAILED),
        ([item(FenceOutcome.FAILED, DENIED), item(FenceOutcome.UNCONFIRMED, LOST)], ExitCode.FAILED),
        ([], ExitCode.OK),
    ],
)
def test_the_exit_code_follows_the_outcomes(items: Sequence[FenceItem], exit_code: ExitCode) -> None:
    assert report_of(*items).exit_code is exit_code


@pytest.mark.parametrize(
    ("codes", "exit_code"),
    [
        (AUTHORIZATION_CODES, ExitCode.UNAUTHORIZED),
        (UNREACHABLE_CODES, ExitCode.UNREACHABLE),
        *(({code}, ExitCode.UNAUTHORIZED) for code in sorted(AUTHORIZATION_CODES)),
        *(({code}, ExitCode.UNREACHABLE) for code in sorted(UNREACHABLE_CODES)),
        ({53, 7}, ExitCode.FAILED),
        ({50}, ExitCode.FAILED),
        ({53, 50}, ExitCode.FAILED),
        ({7, -1}, ExitCode.FAILED),
    ],
)
def test_the_exit_code_of_faults_needs_one_cause(codes: set[int], exit_code: ExitCode) -> None:
    assert exit_code_of_faults(KafkaFault(code, "X") for code in codes) is exit_code


@pytest.mark.parametrize(
    ("kind", "failed", "code", "message"),
    [
        (FENCE_PLAN, item(FenceOutcome.FAILED, DENIED), "not_authorized", f"could not describe g-c-0: {DENIED.name}"),
        (FENCE_RESULT, item(FenceOutcome.FAILED, DENIED), "not_authorized", f"could not fence g-c-0: {DENIED.name}"),
        (
            FENCE_RESULT,
            item(FenceOutcome.FAILED, KafkaFault(53, "DENIED", "DENIED"), known=False),
            "not_authorized",
            "could not describe g-c-0: DENIED",
        ),
        (
            FENCE_RESULT,
            FenceItem(
                TransactionalId("g-c-0"),
                Owner("other"),
                FenceOutcome.FAILED,
                coordinator=BROKER,
                fault=KafkaFault(50, "X", "too long"),
            ),
            "failed",
            "could not fence g-c-0: X: too long",
        ),
        (
            FENCE_RESULT,
            item(FenceOutcome.UNCONFIRMED, LOST),
            "unconfirmed",
            "unconfirmed g-c-0: REQUEST_TIMED_OUT: no answer within 60 s",
        ),
    ],
)
def test_a_failure_is_said_with_what_was_being_done(kind: Kind, failed: FenceItem, code: str, message: str) -> None:
    [problem] = report_of(failed, kind=kind).problems
    assert (problem.code, problem.message, problem.severity) == (code, message, "error")


def test_one_problem_stands_for_all_ids_that_failed_alike() -> None:
    items = [item(FenceOutcome.FAILED, DENIED, name=f"g-c-{at}") for at in range(3)]
    first, second = report_of(item(FenceOutcome.FAILED, LOST), *items, item(FenceOutcome.FAILED)).problems
    assert first.message.startswith("could not fence g-c-0: REQUEST_TIMED_OUT")
    assert second.message == f"could not fence 3 ids (g-c-0, ...): {DENIED.name}"


@pytest.mark.parametrize(
    ("kind", "needed", "options"),
    [
        (FENCE_PLAN, "DESCRIBE on TransactionalId (and then WRITE)", "--operation Describe --operation Write"),
        (FENCE_RESULT, "WRITE on TransactionalId", "--operation Write"),
    ],
)
def test_what_is_missing_is_one_line_to_paste(kind: Kind, needed: str, options: str) -> None:
    [problem] = report_of(item(FenceOutcome.FAILED, DENIED), kind=kind).problems
    assert problem.hint == (
        f"Missing: {needed}. Grant it with:\nkafka-acls.sh --bootstrap-server b:9092 --add "
        f"--allow-principal User:alice {options} --transactional-id g-c-0"
    )


def test_a_timeout_that_brokers_refuse_has_its_own_hint() -> None:
    [problem] = report_of(item(FenceOutcome.FAILED, KafkaFault(50, "INVALID_TRANSACTION_TIMEOUT"))).problems
    assert problem.hint is not None
    assert "transaction.max.timeout.ms" in problem.hint
    [other] = report_of(item(FenceOutcome.FAILED, KafkaFault(-1, "X"))).problems
    assert other.hint is None
