"""A coordinator has committed, and has written no marker: the transaction is ended whole, the way it was decided."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eosctl.app import App
from eosctl.core.allowances import Waiver
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.records import OutRecord
from eosctl.deadline import Deadline
from eosctl.errors import ExitCode
from eosctl.report import Report
from eosctl.target import Target
from eosctl.txn.apply import prepare_abort_hanging, prepare_end
from eosctl.txn.partitions import find_hanging_transactions
from eosctl.txn.plan import EndRequest, HangingRequest
from eosctl.wire.error_codes import CLUSTER_AUTHORIZATION_FAILED
from tests.fakes.broker import Seen
from tests.fakes.clock import PLENTY_S
from tests.fakes.txn_stage import Stage
from tests.schema_check import faults_of

OFFSETS = "connect-offsets"
PLACES = [("out", 0), ("out", 1), (OFFSETS, 0)]


@pytest.fixture
def lost(stage: Stage) -> Stage:
    """Task g-c-7 has committed a record in each of two partitions and its offset; no marker was written."""
    state = stage.cluster.state
    state.add_topic(OFFSETS, 1)
    state.add_topic("out", 2, {})
    state.open_transaction("g-c-7", (OFFSETS, 0), ("out", 1), ("out", 0), epoch=3)
    state.lose_markers("g-c-7")
    return stage


def app(stage: Stage, state_dir: Path) -> App:
    target = Target(client=ClientSettings(stage.cluster.bootstrap_servers), group_id="g")
    return App(
        target, Deadline.after(PLENTY_S), state_dir,
        open_topics=stage.topics.open, open_transactions=stage.cluster.open_transactions,
    )  # fmt: skip


def complete(stage: Stage, state_dir: Path, *waived: Waiver, place: tuple[str, int] = (OFFSETS, 0)) -> Report:
    request = EndRequest(*place, start_offset=0, waived=frozenset(waived), commit=True)
    plan = prepare_end(app(stage, state_dir), request)
    report = plan.report() if plan.apply is None else plan.apply()
    assert faults_of(json.loads(json.dumps(report.envelope()))) == []
    return report


def places(report: Report) -> list[tuple[str, int]]:
    return [(row.topic, row.partition) for row in report.rows]


def committed(stage: Stage) -> list[int]:
    """How many records a reader of committed records gets in each place."""
    return [len(stage.cluster.state.log(*place).visible("read_committed")) for place in PLACES]


def test_it_is_found_at_once(lost: Stage) -> None:
    """For fifteen minutes `txn hanging` said that there is none, and doctor that a partition of it is to be aborted."""
    report = find_hanging_transactions(lost.app, None)
    assert sorted(places(report)) == sorted(PLACES)
    assert {(row.reason, row.transactional_id) for row in report.rows} == {("partition_not_in_transaction", "g-c-7")}
    assert report.exit_code is ExitCode.FINDINGS


def test_one_that_ends_while_coordinators_are_asked_hangs_not(stage: Stage) -> None:
    """The leaders are asked before, the coordinator after it is complete."""
    state = stage.cluster.state

    def ends(_call: object) -> None:
        known = state.transactions["g-c-1"]
        if known.state == "Ongoing":
            state.end_transaction("g-c-1", (known.producer_id, known.producer_epoch), commit=True)

    stage.cluster.calls.before("list_transactions", ends)
    assert find_hanging_transactions(stage.app, None).rows == []


def test_it_is_committed_on_all_partitions_and_offsets_come_last(lost: Stage, tmp_path: Path) -> None:
    assert committed(lost) == [0, 0, 0]
    report = complete(lost, tmp_path)
    assert places(report) == PLACES
    assert [(row.outcome, row.decided, row.decided_by) for row in report.rows] == [("committed", "commit", "log")] * 3
    assert (committed(lost), report.exit_code) == ([1, 1, 1], ExitCode.OK)
    assert [len(lost.cluster.state.log(*place).aborted) for place in PLACES] == [0, 0, 0]


def test_a_producer_that_goes_on_there_is_not_committed(lost: Stage, tmp_path: Path) -> None:
    """Right before the marker it writes its next transaction to out-1: the leader refuses, offsets are not reached."""
    state = lost.cluster.state
    known = state.transactions["g-c-7"]
    request = EndRequest(OFFSETS, 0, start_offset=0, commit=True)
    plan = prepare_end(app(lost, tmp_path), request)

    def goes_on(seen: Seen, answer: bytes) -> bytes:
        if seen.api == "WriteTxnMarkers" and lost.cluster.count("WriteTxnMarkers") == 1:
            state.write_in("g-c-7", (known.producer_id, 4), OutRecord("out", b"k", b"next"), 1)
        return answer

    lost.cluster.tamper = goes_on
    assert plan.apply is not None
    report = plan.apply()
    assert [row.outcome for row in report.rows] == ["committed", "failed", "not_reached"]
    assert (committed(lost), report.exit_code) == ([1, 0, 0], ExitCode.PARTIAL)


def test_what_decided_it_is_kept_before(lost: Stage, tmp_path: Path) -> None:
    kept: Any = complete(lost, tmp_path).data
    lines = [json.loads(line) for line in Path(kept.backup).read_text().splitlines()]
    assert {line["topic"] for line in lines} == {"__transaction_state"}
    assert len(lines) >= 2


def test_an_abort_of_it_is_refused_and_waived_ends_all_of_it(lost: Stage) -> None:
    """Doctor's fix aborted the offset alone: the record was delivered twice."""
    request = EndRequest(OFFSETS, 0, start_offset=0)
    plan = prepare_end(lost.app, request)
    shown = plan.report()
    assert (plan.apply, shown.exit_code) == (None, ExitCode.REFUSED)
    assert [row.refused for row in shown.rows] == [["commit_decided"]] * 3
    waived = prepare_end(lost.app, EndRequest(OFFSETS, 0, 0, waived=frozenset({Waiver.LOSE_COMMITTED})))
    assert waived.apply is not None
    report = waived.apply()
    assert (places(report), {row.outcome for row in report.rows}) == (PLACES, {"aborted"})
    assert lost.cluster.state.log(OFFSETS, 0).lso == lost.cluster.state.log(OFFSETS, 0).end


def test_all_parts_are_in_the_plan_for_one_topic(lost: Stage) -> None:
    lost.cluster.state.forget("g-c-7")
    for place in PLACES:
        for producer in lost.cluster.state.log(*place).producers:
            lost.hang(producer, *place)
    plan = prepare_abort_hanging(lost.app, HangingRequest(OFFSETS))
    assert places(plan.report()) == PLACES


def test_offsets_are_not_ended_where_a_record_could_not_be(lost: Stage, tmp_path: Path) -> None:
    """A worker that starts would read the offset, and go on before the records have ended."""
    lost.cluster.fail_next("WriteTxnMarkers", CLUSTER_AUTHORIZATION_FAILED)
    report = complete(lost, tmp_path)
    assert [row.outcome for row in report.rows] == ["failed", "not_reached", "not_reached"]
    assert report.exit_code is ExitCode.UNAUTHORIZED


def _aborted(stage: Stage) -> None:
    state = stage.cluster.state
    state.add_topic("__transaction_state", 50)
    state.lose_markers("g-c-7", commit=False)
    state.transactions["g-c-7"].producer_epoch = 4


def _of_another_epoch(stage: Stage) -> None:
    stage.cluster.state.add_topic("__transaction_state", 50)
    stage.cluster.state.lose_markers("g-c-7")


def _of_an_old_client(stage: Stage) -> None:
    state = stage.cluster.state
    state.add_topic("__transaction_state", 50)
    state.transactions["g-c-7"].producer_epoch = 3
    state.log_of("g-c-7", client_version=1)


def _gone(stage: Stage) -> None:
    stage.cluster.state.add_topic("__transaction_state", 50)


@pytest.mark.parametrize("then", [_aborted, _of_another_epoch, _of_an_old_client, _gone])
def test_without_the_record_of_this_very_commit_nothing_is_committed(lost: Stage, tmp_path: Path, then: Any) -> None:
    then(lost)
    report = complete(lost, tmp_path, Waiver.UNREAD_COORDINATOR, Waiver.UNSEEN_PARTS)
    assert {tuple(row.refused) for row in report.rows} == {("commit_not_read",)}
    assert (report.exit_code, lost.cluster.count("WriteTxnMarkers")) == (ExitCode.REFUSED, 0)


def test_what_its_coordinator_has_open_is_not_completed(stage: Stage, tmp_path: Path) -> None:
    report = complete(stage, tmp_path, place=("t", 0))
    assert {tuple(row.refused) for row in report.rows} == {("coordinator_has_it", "commit_not_read")}


def test_a_partition_that_is_not_in_the_commit_is_left(lost: Stage, tmp_path: Path) -> None:
    """A batch that came after the end, as brokers before 4.0 took it."""
    state = lost.cluster.state
    known = state.transactions["g-c-7"]
    state.append(OutRecord("t", b"k", b"late"), 0, (known.producer_id, 3), transactional=True)
    report = complete(lost, tmp_path)
    assert report.exit_code is ExitCode.REFUSED
    assert {tuple(row.refused) for row in report.rows} == {("commit_not_read",)}
