"""`txn abort --hanging`: everything that hangs, judged again before it is aborted, with an outcome each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace as with_other
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.core.allowances import Waiver
from eosctl.errors import ExitCode, StalePlanError, UnauthorizedError, UnreachableError
from eosctl.plan import Plan
from eosctl.report import Report
from eosctl.txn.apply import prepare_abort_hanging
from eosctl.txn.plan import HangingRequest
from eosctl.wire.error_codes import CLUSTER_AUTHORIZATION_FAILED, REQUEST_TIMED_OUT, TOPIC_AUTHORIZATION_FAILED
from tests.fakes.broker import Seen
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.txn_stage import HOUR_MS, Stage
from tests.schema_check import faults_of

Place = tuple[str, int]


@pytest.fixture
def hanging(stage: Stage) -> Stage:
    """Two transactions whose ids are forgotten, on t-0 and t-1, and on u-0; one of g-c-9 on u-0, not forgotten."""
    state = stage.cluster.state
    state.open_transaction("other", ("u", 0))
    state.open_transaction("g-c-9", ("u", 0))
    for topic, partition in (("t", 0), ("t", 1), ("u", 0)):
        for producer in state.log(topic, partition).producers:
            stage.hang(producer, topic, partition)
    state.forget("g-c-1")
    state.forget("other")
    return stage


def prepare(stage: Stage, topic: str | None = None, older_than_ms: int = 900_000) -> Plan:
    return prepare_abort_hanging(stage.app, HangingRequest(topic, older_than_ms))


def apply(plan: Plan) -> Report:
    assert plan.apply is not None
    report = plan.apply()
    assert faults_of(json.loads(json.dumps(report.envelope()))) == []
    return report


def outcomes(report: Report) -> dict[Place, str]:
    return {(row.topic, row.partition): row.outcome for row in report.rows}


def places(report: Report) -> list[Place]:
    return [(row.topic, row.partition) for row in report.rows]


def test_all_that_hangs_is_aborted_and_nothing_else(hanging: Stage) -> None:
    plan = prepare(hanging)
    assert plan.question == "Abort 2 transactions on 3 partitions (t-0, t-1, u-0)?"
    assert places(plan.report()) == [("t", 0), ("t", 1), ("u", 0)]
    report = apply(plan)
    assert outcomes(report) == dict.fromkeys([("t", 0), ("t", 1), ("u", 0)], "aborted")
    assert (report.exit_code, report.summary) == (ExitCode.OK, {"aborted": 3})
    assert [(row.lso_before, row.lso_after) for row in report.rows if row.topic == "t"] == [(0, 2), (0, 2)]
    assert hanging.cluster.state.transactions["g-c-9"].state == "Ongoing"


def test_one_topic(hanging: Stage) -> None:
    assert outcomes(apply(prepare(hanging, "u"))) == {("u", 0): "aborted"}
    assert places(prepare(hanging).report()) == [("t", 0), ("t", 1)]


def test_younger_ones_are_left(hanging: Stage) -> None:
    plan = prepare(hanging, older_than_ms=2 * HOUR_MS)
    assert (plan.apply, plan.report().rows, plan.report().exit_code) == (None, [], ExitCode.OK)


def test_one_that_ended_in_part_is_stale_and_the_others_are_aborted(hanging: Stage) -> None:
    """Its other part was aborted: a transaction is ended whole, or not at all."""
    plan = prepare(hanging)
    for producer in hanging.cluster.state.log("t", 1).producers.values():
        producer.start_offset = -1
    report = apply(plan)
    assert outcomes(report) == {("t", 0): "stale", ("t", 1): "stale", ("u", 0): "aborted"}
    assert (report.exit_code, [problem.code for problem in report.problems]) == (ExitCode.PARTIAL, ["stale_plan"])
    assert hanging.cluster.count("WriteTxnMarkers") == 1


def test_one_that_a_coordinator_knows_again_is_stale(hanging: Stage) -> None:
    state = hanging.cluster.state
    plan = prepare(hanging)
    (producer_id,) = state.log("t", 0).producers
    state.transactions["g-c-1"] = with_other(
        state.transactions["g-c-9"], producer_id=producer_id, partitions={("t", 0)}
    )
    assert outcomes(apply(plan)) == {("t", 0): "stale", ("t", 1): "stale", ("u", 0): "aborted"}


@pytest.mark.parametrize("another", [True, False], ids=["another cluster", "all ended"])
def test_a_plan_of_which_nothing_is_left_is_stale(hanging: Stage, another: bool) -> None:
    plan = prepare(hanging)
    if another:
        hanging.cluster.state.cluster_id = "another"
    else:
        for topic, partition in (("t", 0), ("t", 1), ("u", 0)):
            for producer in hanging.cluster.state.log(topic, partition).producers.values():
                producer.start_offset = -1
    with pytest.raises(StalePlanError):
        apply(plan)
    assert hanging.cluster.count("WriteTxnMarkers") == 0


def test_one_that_is_refused_hides_no_other(hanging: Stage) -> None:
    plan = prepare(hanging)
    hanging.cluster.fail_next("WriteTxnMarkers", CLUSTER_AUTHORIZATION_FAILED)
    report = apply(plan)
    assert outcomes(report) == {("t", 0): "failed", ("t", 1): "not_reached", ("u", 0): "aborted"}
    assert (report.exit_code, report.rows[0].error.code) == (ExitCode.PARTIAL, "CLUSTER_AUTHORIZATION_FAILED")
    assert "ALTER" in str(report.problems[0].hint).upper()


def test_none_that_may_be_aborted_is_a_lack_of_rights(hanging: Stage) -> None:
    plan = prepare(hanging)
    hanging.cluster.fail_next("WriteTxnMarkers", *[CLUSTER_AUTHORIZATION_FAILED] * 2)
    assert apply(plan).exit_code == ExitCode.UNAUTHORIZED


def test_a_lost_answer_is_read_back(hanging: Stage) -> None:
    plan = prepare(hanging)
    hanging.cluster.fail_next("WriteTxnMarkers", REQUEST_TIMED_OUT)  # and it was not written
    report = apply(plan)
    assert outcomes(report) == {("t", 0): "unconfirmed", ("t", 1): "not_reached", ("u", 0): "aborted"}
    assert (report.exit_code, report.problems[0].code) == (ExitCode.PARTIAL, "unconfirmed")


def test_an_abort_that_nothing_confirms(hanging: Stage) -> None:
    plan = prepare(hanging, "u")

    def once_marked(seen: Seen, answer: bytes) -> bytes:
        if seen.api == "WriteTxnMarkers":
            hanging.cluster.fail_next("DescribeProducers", TOPIC_AUTHORIZATION_FAILED)
        return answer

    hanging.cluster.tamper = once_marked
    report = apply(plan)
    assert (outcomes(report), report.exit_code) == ({("u", 0): "aborted_not_confirmed"}, ExitCode.PARTIAL)


def test_ctrl_c_leaves_the_others_as_they_were_and_says_so(hanging: Stage) -> None:
    plan = prepare(hanging)
    seen_one: list[Seen] = []

    def second(seen: Seen, answer: bytes) -> bytes:
        if seen.api == "WriteTxnMarkers":
            if seen_one:
                raise KeyboardInterrupt
            seen_one.append(seen)
        return answer

    hanging.cluster.tamper = second
    report = apply(plan)
    assert list(outcomes(report).values())[::2] == ["aborted", "not_reached"]
    assert (report.exit_code, report.problems[0].code) == (ExitCode.INTERRUPTED, "interrupted")


def test_what_could_not_be_looked_at_makes_it_partial(hanging: Stage) -> None:
    hanging.cluster.fail_next("DescribeProducers", TOPIC_AUTHORIZATION_FAILED)
    plan = prepare(hanging)
    shown = plan.report()
    assert shown.rows
    assert {problem.severity for problem in shown.problems} == {"warning"}
    assert apply(plan).exit_code == ExitCode.PARTIAL


@pytest.mark.parametrize("every", [True, False], ids=["all are without an id", "one has an id"])
def test_a_transaction_whose_id_may_be_hidden_is_left_alone(hanging: Stage, every: bool) -> None:
    """Brokers list no id that one may not DESCRIBE: only the coordinators' log shows that there is none."""
    hanging.topics.fail_next("read", UnauthorizedError("not allowed to read __transaction_state"))
    if not every:  # an id that has gone on
        (producer_id,) = hanging.cluster.state.log("t", 1).producers
        hanging.cluster.state.transactions["seen"] = FakeTransaction(producer_id, 9)
    plan = prepare(hanging)
    shown = plan.report()
    left = {(row.topic, row.partition): row.refused for row in shown.rows}
    hidden = ["id_may_be_hidden"]
    assert left == {("t", 0): hidden if every else [], ("t", 1): hidden if every else [], ("u", 0): hidden}
    assert (plan.apply is None, shown.exit_code) == (every, ExitCode.REFUSED if every else ExitCode.OK)
    if not every:
        report = apply(plan)
        assert outcomes(report) == {("t", 0): "aborted", ("t", 1): "aborted", ("u", 0): "refused"}
        assert report.exit_code == ExitCode.PARTIAL
    assert hanging.cluster.count("WriteTxnMarkers") == (0 if every else 2)


@pytest.mark.parametrize("every", [True, False])
def test_one_that_can_t_be_judged_again_is_not_called_ended(hanging: Stage, every: bool) -> None:
    plan = prepare(hanging)
    hanging.cluster.deny_read |= {"t", "u"} if every else {"t"}
    report = apply(plan)
    left = dict.fromkeys([("t", 0), ("t", 1)], "not_checked")
    assert outcomes(report) == {**left, ("u", 0): "not_checked" if every else "aborted"}
    assert report.exit_code == (ExitCode.UNAUTHORIZED if every else ExitCode.PARTIAL)
    assert "is not known, so nothing was written" in report.problems[0].message
    assert hanging.cluster.count("WriteTxnMarkers") == (0 if every else 1)


def test_many_are_judged_right_before_their_markers(stage: Stage) -> None:
    """Of 30 the 25th goes on while the first ones are aborted: it is not touched."""
    state = stage.cluster.state
    state.add_topic("many", 30)
    for number in range(30):
        producer = state.open_transaction(f"gone-{number}", ("many", number))
        stage.hang(producer, "many", number)
        state.forget(f"gone-{number}")
    plan = prepare(stage, "many")

    def goes_on(seen: Seen, answer: bytes) -> bytes:
        if seen.api == "WriteTxnMarkers":
            for producer in state.log("many", 25).producers.values():
                producer.start_offset = -1
        return answer

    stage.cluster.tamper = goes_on
    report = apply(plan)
    assert outcomes(report).pop(("many", 25)) == "stale"
    assert report.summary == {"aborted": 29, "stale": 1}


def test_offsets_that_can_t_be_read_hinder_nothing(hanging: Stage) -> None:
    def no_topics(_app: Any) -> Any:
        raise UnreachableError("no broker answers")

    request = HangingRequest(waived=frozenset({Waiver.HIDDEN_ID}))
    report = apply(prepare_abort_hanging(replace(hanging.app, open_topics=no_topics), request))
    assert {(row.lso_before, row.lso_after, row.outcome) for row in report.rows} == {(None, None, "aborted")}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--hanging", "--partition", "0"], "--hanging takes no options"),
        (["--hanging", "--force"], "--hanging takes no options"),
        (["--topic", "t"], "needs --topic and --partition"),
        (["--topic", "t", "--partition", "0", "--start-offset", "0", "--older-than", "1h"], "takes no --older-than"),
        # as `txn hanging` calls it
        (
            ["--topic", "t", "--partition", "0", "--start-offset", "0", "--max-transaction-timeout", "1h"],
            "takes no --older-than",
        ),
        ([], "needs --topic and --partition"),
    ],
)
def test_options_that_contradict_each_other(invoke: Callable[..., Any], words: list[str], says: str) -> None:
    outcome = invoke("txn", "abort", *words, "-b", "127.0.0.1:1")
    assert (outcome.exit_code, says in outcome.stderr) == (ExitCode.USAGE, True), outcome.stderr
