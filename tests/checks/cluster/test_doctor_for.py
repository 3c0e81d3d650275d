"""`doctor --for streams|flink`: without a Connect group, on brokers in memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.checks.applications import ApplicationsToCheck, examine_applications, to_check
from eosctl.core.transaction_log import TOPIC
from eosctl.errors import ExitCode, UnreachableError, UsageError
from eosctl.ports import TransactionAdmin
from eosctl.report import Report
from eosctl.wire.error_codes import UNKNOWN_SERVER_ERROR
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.txn_stage import Stage, txn_stage
from tests.schema_check import faults_of


@pytest.fixture
def stage() -> Stage:
    """Streams application billing, a Flink sink with a timeout above the maximum; no Connect group is named."""
    built = txn_stage()
    built.group_id = None
    state = built.cluster.state
    state.topics[TOPIC].config["min.insync.replicas"] = "1"
    state.transactions["billing-0_0"] = FakeTransaction(200, 0)
    state.transactions["sink-0-7"] = FakeTransaction(201, 0, timeout_ms=3_600_000)
    return built


@pytest.fixture
def app(stage: Stage, tmp_path: Path) -> App:
    return replace(stage.app, state_dir=tmp_path)


def look(app: App, product: str = "streams", *applications: str, **more: Any) -> Report:
    report = examine_applications(app, ApplicationsToCheck(product, applications), **more)
    assert faults_of(json.loads(json.dumps(report.envelope()))) == []
    return report


def found(report: Report) -> set[tuple[str, str]]:
    return {(row.check, str(row.code)) for row in report.rows}


def test_nothing_is_wrong_for_streams(app: App) -> None:
    report = look(app)
    assert found(report) == {("acls", "acls_not_checked"), ("kafka", "known_bug")}
    assert (report.exit_code, report.data.group) == (ExitCode.OK, None)
    assert [check.check for check in report.data.checks] == [
        "kafka", "transactions", "applications", "topics", "acls",
    ]  # fmt: skip


def test_a_timeout_above_the_maximum_is_a_warning_for_flink(app: App) -> None:
    assert ("applications", "timeout_above_maximum") in found(look(app, "flink"))
    assert look(app, "flink").exit_code == ExitCode.OK
    assert look(app, "flink", strict=True).exit_code == ExitCode.FINDINGS
    assert ("applications", "timeout_above_maximum") not in found(look(app, "flink", "other"))


@pytest.mark.parametrize(("times", "is_often"), [(4, False), (5, True)])
def test_an_id_that_is_initialised_again_and_again_is_a_warning(
    stage: Stage, app: App, times: int, is_often: bool
) -> None:
    """Two instances of an application with one id fenced each other all night, and doctor was silent."""
    state = stage.cluster.state
    now_ms = app.clock.now_ms()
    state.stamp_ms = now_ms - 700_000
    for _ in range(9):  # before the window
        state.init_producer_id("billing-0_0", 60_000)
    state.stamp_ms = now_ms - 100_000
    for _ in range(times):
        state.init_producer_id("billing-0_0", 60_000)
    assert (("applications", "initialised_often") in found(look(app))) == is_often
    assert ("applications", "initialised_often") not in found(look(app, "flink"))
    assert ("applications", "initialised_often") not in found(look(app, "streams", "other"))


def test_a_log_that_can_not_be_read_claims_nothing(stage: Stage, app: App) -> None:
    stage.topics.fail_always("bounds", UnreachableError("away"))
    report = look(app)
    assert [row.severity for row in report.rows if row.code == "initialisations_unread"] == ["info"]
    assert ("applications", "initialised_often") not in found(report)


@pytest.mark.parametrize(
    ("epoch", "level", "release", "is_said"),
    [
        (32_699, 1, 30, False),
        (32_700, 1, 30, True),  # so many starts
        (32_700, 2, 30, False),  # so many transactions
        (32_700, 2, 27, True),  # which may be stuck at the end
    ],
)
def test_epochs_near_their_end(stage: Stage, app: App, epoch: int, level: int, release: int, is_said: bool) -> None:
    state = stage.cluster.state
    state.finalized["transaction.version"], state.supported["metadata.version"] = level, release
    state.transactions["billing-0_0"].producer_epoch = epoch
    assert (("applications", "epochs_nearly_spent") in found(look(app))) == is_said


def test_an_application_that_nobody_knows_is_said(app: App) -> None:
    assert ("applications", "application_not_seen") in found(look(app, "streams", "nosuch"))
    assert ("applications", "application_not_seen") not in found(look(app, "streams", "billing"))


def test_ids_that_no_coordinator_lists_are_not_called_unseen(app: App, stage: Stage) -> None:
    """Of three brokers one is loading: its ids are in no listing, which is no calm and no absence."""
    stage.cluster.fail_next("ListTransactions", *[UNKNOWN_SERVER_ERROR] * 4)
    report = look(app, "streams", "billing")
    told = {(row.check, str(row.code)) for row in report.rows}
    assert ("applications", "not_checked") in told
    assert ("applications", "application_not_seen") not in told


def test_where_no_topic_can_be_seen_hanging_ones_can_t_either(app: App, stage: Stage) -> None:
    stage.cluster.deny_topics |= set(stage.cluster.state.topics)
    assert ("transactions", "not_checked") in found(look(app))


def test_a_hanging_transaction_is_an_error(app: App, stage: Stage) -> None:
    state = stage.cluster.state
    del state.transactions["g-c-1"]
    for place in (("t", 0), ("t", 1)):
        for producer in state.log(*place).producers:
            stage.hang(producer, *place)
    report = look(app)
    assert ("transactions", "hanging_transaction") in found(report)
    assert report.exit_code == ExitCode.FINDINGS


def test_bugs_and_the_transaction_version_of_older_brokers(app: App, stage: Stage) -> None:
    state = stage.cluster.state
    state.supported["metadata.version"], state.finalized["transaction.version"] = 25, 1
    rows = {(str(row.code), row.subject) for row in look(app).rows}
    assert {("known_bug", "KAFKA-19690"), ("transaction_version_behind", "transaction.version")} <= rows


def test_where_no_broker_answers_nothing_is_claimed(app: App) -> None:
    def nobody(_app: App) -> TransactionAdmin:
        raise UnreachableError("no broker answers")

    report = look(replace(app, open_transactions=nobody, open_topics=nobody))
    assert report.exit_code == ExitCode.UNREACHABLE
    assert {str(row.code) for row in report.rows} >= {"not_checked"}


def test_options_that_go_together() -> None:
    assert to_check(None, (), ()) is None
    with pytest.raises(UsageError, match="go with --for"):
        to_check(None, ("a",), ())
