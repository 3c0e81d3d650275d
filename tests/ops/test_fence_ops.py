"""fence against a cluster that speaks the protocol: what is planned, refused, fenced, lost and told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.client_settings import ClientSettings
from eosctl.core.transactions import FenceAnswer
from eosctl.deadline import Deadline
from eosctl.errors import (
    ExitCode,
    NotFoundError,
    RefusedError,
    StalePlanError,
    UnreachableError,
    UnsupportedError,
    UsageError,
)
from eosctl.events import Event
from eosctl.kafka.transaction_admin import NativeTransactionAdmin
from eosctl.ops.app import App
from eosctl.ops.fence import apply_fence, plan_fence
from eosctl.ops.fence_checks import restart_commands
from eosctl.ops.fence_gather import FenceRequest
from eosctl.profiles import Target
from eosctl.report import Report
from tests.fakes.broker import FakeCluster
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.config_cluster import FakeCluster as ConfigCluster
from tests.fakes.config_cluster import config_records, created
from tests.fakes.transactions import FakeTaskWorker


@dataclass
class Stage:
    """A cluster, a worker, a config topic, and the App that reaches them."""

    cluster: FakeCluster
    worker: FakeTaskWorker = field(default_factory=FakeTaskWorker)
    config: ConfigCluster = field(default_factory=ConfigCluster)
    events: list[Event] = field(default_factory=list)
    group_id: str | None = "g"
    timeout_s: float = 20.0

    def app(self) -> App:
        client = ClientSettings(self.cluster.bootstrap_servers, sasl_username="alice")
        target = Target(client=client, connect_urls=("http://user:pw@w1:8083",), group_id=self.group_id)
        return App(
            target,
            Deadline.after(self.timeout_s),
            Path("unused"),
            on_event=self.events.append,
            open_topics=self.config.doors()["open_topics"],
            open_worker=lambda _app, _url: self.worker,  # type: ignore[arg-type,return-value]
        )

    def plan(self, *ids: str, **options: Any) -> Report:
        app = self.app()
        return plan_fence(app, FenceRequest(ids, **options)).report(app)

    def fence(self, *ids: str, **options: Any) -> Report:
        app = self.app()
        return apply_fence(app, plan_fence(app, FenceRequest(ids, **options)))


@pytest.fixture
def stage() -> Iterator[Stage]:
    """Ids g-c-0 (empty), g-c-1 (a transaction is open on t-0), g-d-0 and a leader's; two brokers."""
    with FakeCluster(brokers=2) as cluster:
        state = cluster.state
        state.transactions["g-c-0"] = FakeTransaction(1, 4)
        state.open_transaction("g-c-1", ("t", 0), epoch=8)
        state.transactions["g-d-0"] = FakeTransaction(3, 0)
        state.transactions["connect-cluster-g"] = FakeTransaction(5, 0)
        yield Stage(cluster)


def outcomes(report: Report) -> dict[str, str]:
    return {str(row["transactional_id"]): str(row["outcome"]) for row in report.rows}


def codes(report: Report) -> list[str]:
    return [problem.code for problem in report.problems]


def row(report: Report, transactional_id: str) -> Any:
    return next(row for row in report.rows if row["transactional_id"] == transactional_id)


def test_a_plan_shows_states_and_changes_nothing(stage: Stage) -> None:
    report = stage.plan("g-c-1", "g-c-0", "nosuch", "g-c-0")
    assert outcomes(report) == {"g-c-1": "would_fence", "g-c-0": "would_fence", "nosuch": "skipped_unknown"}
    assert (report.kind, report.exit_code) == ("fence-plan", ExitCode.OK)
    assert row(report, "g-c-0")["before"] == {
        "state": "Empty",
        "producer_id": 1,
        "producer_epoch": 4,
        "transaction_timeout_ms": 60_000,
        "age_ms": None,
    }
    assert 0 <= row(report, "g-c-1")["before"]["age_ms"] < 60_000
    assert row(report, "g-c-1")["owner"] == {"kind": "task", "connector": "c", "task": 1, "application": None}
    assert row(report, "nosuch")["before"] is None
    assert report.summary["counts"] == {"would_fence": 2, "skipped_unknown": 1}
    assert stage.cluster.count("InitProducerId") == 0


def test_fencing_gives_what_java_gives(stage: Stage) -> None:
    """Empty e -> e+1; Ongoing e -> aborted, then e+2; an unknown id is skipped."""
    report = stage.fence("g-c-0", "g-c-1", "nosuch")
    assert outcomes(report) == {"g-c-0": "fenced", "g-c-1": "fenced", "nosuch": "skipped_unknown"}
    assert row(report, "g-c-0")["after"] == {"producer_id": 1, "producer_epoch": 5}
    assert row(report, "g-c-1")["after"]["producer_epoch"] == 10
    assert stage.cluster.state.producers["t", 0][row(report, "g-c-1")["after"]["producer_id"]].start_offset == -1
    assert stage.cluster.state.transactions["g-c-0"].timeout_ms == 30_000
    assert "nosuch" not in stage.cluster.state.transactions
    assert (report.exit_code, codes(report)) == (ExitCode.OK, [])
    assert stage.events[-1] == Event("fencing", done=2, total=2, unit="ids")


def test_the_second_plan_recognises_what_the_first_run_did(stage: Stage) -> None:
    stage.fence("g-c-0", "g-c-1")
    again = stage.plan("g-c-0", "g-c-1", "g-d-0")
    assert [row["already_fenced"] for row in again.rows] == [True, True, False]
    assert set(outcomes(again).values()) == {"would_fence"}
    assert again.summary["already_fenced"] == 2


def test_unknown_ids_are_created_only_when_told_to(stage: Stage) -> None:
    assert row(stage.fence("nosuch", create_unknown=True), "nosuch")["after"]["producer_epoch"] == 0


def test_ids_by_prefix_and_pattern_are_sorted_and_after_the_given_ones(stage: Stage) -> None:
    assert list(outcomes(stage.plan("g-d-0", prefix="g-"))) == ["g-d-0", "g-c-0", "g-c-1"]
    assert list(outcomes(stage.plan(pattern="g-.-0"))) == ["g-c-0", "g-d-0"]
    assert list(outcomes(stage.plan(prefix="g-", pattern=".*-1"))) == ["g-c-1"]
    assert list(outcomes(stage.plan(pattern="g-c"))) == []  # the whole id must match


@pytest.mark.parametrize(
    ("ids", "options"),
    [
        ((), {}),
        ((), {"tasks": 2}),
        (("",), {}),
        ((), {"prefix": ""}),
        ((), {"pattern": "("}),
        ((), {"connector": ""}),
    ],
)
def test_requests_that_name_nothing(stage: Stage, ids: Sequence[str], options: Any) -> None:
    with pytest.raises(UsageError):
        stage.plan(*ids, **options)


def test_a_connectors_ids_come_from_its_task_count_record(stage: Stage) -> None:
    """Connect fences the recorded tasks, not the present ones."""
    stage.config.records = config_records(*created("c", 1, record=3))
    report = stage.plan(connector="c")
    assert list(outcomes(report)) == ["g-c-0", "g-c-1", "g-c-2"]
    assert row(report, "g-c-2")["outcome"] == "skipped_unknown"


def test_tasks_overrides_the_record_and_says_so(stage: Stage) -> None:
    stage.config.records = config_records(*created("c", 1, record=3))
    report = stage.plan(connector="c", tasks=1)
    assert list(outcomes(report)) == ["g-c-0"]
    assert codes(report) == ["task_count_overridden"]


@pytest.mark.parametrize("records", [(), created("c", 2, record=None)], ids=["no connector", "no record"])
def test_a_connector_without_a_record_is_not_found(stage: Stage, records: Any) -> None:
    stage.config.records = config_records(*records)
    with pytest.raises(NotFoundError, match="no task-count record") as caught:
        stage.plan(connector="c")
    assert "--tasks" in str(caught.value.hint)


def test_a_connector_whose_name_makes_its_id_look_like_a_leaders(stage: Stage) -> None:
    """Group connect, connector cluster-x: connect-cluster-x-0 was refused as the leader of group x-0."""
    stage.group_id = "connect"
    stage.cluster.state.transactions["connect-cluster-x-0"] = FakeTransaction(9, 0)
    assert outcomes(stage.plan(connector="cluster-x", tasks=1)) == {"connect-cluster-x-0": "would_fence"}
    with pytest.raises(RefusedError, match="leader"):
        stage.plan("connect-cluster-x-0")


@pytest.mark.parametrize("state", ["RUNNING", "PAUSED", "RESTARTING"])
def test_a_live_task_is_refused_with_names(stage: Stage, state: str) -> None:
    stage.worker.tasks = {("c", 1): state}
    with pytest.raises(RefusedError, match="worker w1:8083 runs task 1 of connector c") as caught:
        stage.plan("g-c-0", "g-c-1")
    assert "--live" in str(caught.value.hint)
    assert stage.cluster.count("InitProducerId") == 0


@pytest.mark.parametrize("state", ["FAILED", "UNASSIGNED"])
def test_a_task_without_a_producer_is_no_obstacle(stage: Stage, state: str) -> None:
    stage.worker.tasks = {("c", 1): state}
    assert outcomes(stage.plan("g-c-1")) == {"g-c-1": "would_fence"}


def test_live_fences_it_and_tells_how_to_restart_without_credentials(stage: Stage) -> None:
    stage.worker.tasks = {("c", 1): "RUNNING"}
    report = stage.fence("g-c-1", live=True)
    assert outcomes(report) == {"g-c-1": "fenced"}
    (warning,) = report.problems
    command = "curl -X POST 'http://w1:8083/connectors/c/restart?includeTasks=true&onlyFailed=true'"
    assert (warning.severity, command in str(warning.hint)) == ("warning", True)


def test_a_restart_command_quotes_the_connectors_name(stage: Stage) -> None:
    stage.worker.tasks = {("a b/c", 0): "RUNNING"}
    stage.cluster.state.transactions["g-a b/c-0"] = FakeTransaction(11, 0)
    app = stage.app()
    plan = plan_fence(app, FenceRequest(("g-a b/c-0",), live=True))
    assert "/connectors/a%20b%2Fc/restart" in restart_commands(app, plan.items)[0]


@pytest.mark.parametrize("live", [False, True])
def test_the_leader_id_is_refused_alive_or_not(stage: Stage, live: bool) -> None:
    with pytest.raises(RefusedError, match="connect-cluster-g may be"):
        stage.plan("connect-cluster-g", live=live)
    report = stage.fence("connect-cluster-g", allow_leader=True)
    assert outcomes(report) == {"connect-cluster-g": "fenced"}
    assert codes(report) == ["leader_id"]


def test_what_flink_may_have_prepared_is_refused_and_said(stage: Stage) -> None:
    """A prefix took the open transactions of a Flink job with it, whose checkpointed records were then gone."""
    stage.cluster.state.open_transaction("job-0-7", ("t", 1), epoch=2)
    stage.cluster.state.transactions["job-0-6"] = FakeTransaction(21, 0, "CompleteCommit")
    with pytest.raises(RefusedError, match=r"cannot fence job-0-7: .*Flink") as caught:
        stage.plan(prefix="job-")
    assert "--live" in str(caught.value.hint)
    assert outcomes(stage.fence("job-0-6")) == {"job-0-6": "fenced"}
    report = stage.fence("job-0-7", live=True)
    assert (outcomes(report), codes(report)) == ({"job-0-7": "fenced"}, ["prepared_transactions"])
    assert report.problems[0].severity == "warning"


def test_an_id_that_may_be_flinks_or_a_tasks_is_a_tasks_where_its_connector_is_known(stage: Stage) -> None:
    stage.cluster.state.open_transaction("g-c-1-0", ("t", 1), epoch=2)
    with pytest.raises(RefusedError, match="Flink"):
        stage.plan("g-c-1-0")
    assert outcomes(stage.plan(connector="c-1", tasks=1)) == {"g-c-1-0": "would_fence"}
    stage.worker.tasks = {("c-1", 0): "FAILED"}
    assert outcomes(stage.plan("g-c-1-0")) == {"g-c-1-0": "would_fence"}


def test_a_transaction_that_flink_opens_between_plan_and_apply_makes_the_plan_stale(stage: Stage) -> None:
    stage.cluster.state.transactions["job-0-7"] = FakeTransaction(21, 0)
    app = stage.app()
    plan = plan_fence(app, FenceRequest(("g-c-0", "job-0-7")))
    stage.cluster.state.open_transaction("job-0-7", ("t", 1), epoch=2)
    with pytest.raises(StalePlanError, match="job-0-7 has opened a transaction"):
        apply_fence(app, plan)
    assert stage.cluster.count("InitProducerId") == 0


@pytest.mark.parametrize(("group_id", "transactional_id"), [(None, "g-c-0"), ("g", "another-c-0")])
def test_unknown_liveness_is_said(stage: Stage, group_id: str | None, transactional_id: str) -> None:
    stage.group_id = group_id
    stage.worker.error = UnreachableError("w1 is down")
    report = stage.plan(transactional_id)
    assert codes(report) == ["liveness_unknown"]
    assert report.exit_code == ExitCode.OK


def test_a_task_of_the_group_that_may_run_is_refused(stage: Stage) -> None:
    """With a wrong worker URL, `fence --connector C --yes` only warned, and fenced what may have been a live task."""
    stage.worker.error = UnreachableError("w1 is down")
    with pytest.raises(RefusedError, match=r"cannot fence g-c-0: .*w1 is down"):
        stage.plan("g-c-0")
    assert outcomes(stage.fence("g-c-0", live=True)) == {"g-c-0": "fenced"}


def test_a_worker_of_another_cluster_is_refused(stage: Stage) -> None:
    stage.worker.kafka_cluster_id = "another"
    with pytest.raises(RefusedError, match="another"):
        stage.plan("g-c-0")


def test_a_task_that_starts_between_plan_and_apply_makes_the_plan_stale(stage: Stage) -> None:
    app = stage.app()
    plan = plan_fence(app, FenceRequest(("g-c-0",)))
    stage.worker.tasks = {("c", 0): "RUNNING"}
    with pytest.raises(StalePlanError, match="task 0 of connector c"):
        apply_fence(app, plan)
    assert stage.cluster.count("InitProducerId") == 0


def test_an_epoch_that_moves_between_plan_and_apply_does_not(stage: Stage) -> None:
    """With KIP-890 every transaction raises the epoch: a zombie would make every plan stale."""
    app = stage.app()
    plan = plan_fence(app, FenceRequest(("g-c-0",)))
    stage.cluster.state.transactions["g-c-0"].producer_epoch += 3
    assert outcomes(apply_fence(app, plan)) == {"g-c-0": "fenced"}


def test_another_cluster_or_another_record_makes_the_plan_stale(stage: Stage) -> None:
    stage.config.records = config_records(*created("c", 1, record=1))
    app = stage.app()
    plan = plan_fence(app, FenceRequest(connector="c"))
    with pytest.raises(StalePlanError, match="this is another one"):
        apply_fence(app, replace(plan, cluster_id="was-another"))
    stage.config.records = config_records(*created("c", 1, record=2))
    with pytest.raises(StalePlanError, match="was 1 in the plan and is 2 now"):
        apply_fence(app, plan)
    assert stage.cluster.count("InitProducerId") == 0


@pytest.mark.parametrize(
    ("denied", "exit_code"),
    [({"g-c-0"}, ExitCode.PARTIAL), ({"g-c-0", "g-c-1"}, ExitCode.UNAUTHORIZED)],
    ids=["one of two", "both"],
)
@pytest.mark.parametrize("operation", ["describe", "write"])
def test_a_missing_right_fails_its_ids_only(
    stage: Stage, operation: str, denied: set[str], exit_code: ExitCode
) -> None:
    getattr(stage.cluster, f"deny_{operation}").update(denied)
    report = stage.fence("g-c-0", "g-c-1")
    expected = {name: "failed" if name in denied else "fenced" for name in ("g-c-0", "g-c-1")}
    assert (outcomes(report), report.exit_code) == (expected, exit_code)
    assert row(report, "g-c-0")["error"]["code"] == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    (problem,) = report.problems
    assert problem.code == "not_authorized"
    assert f"Missing: {operation.upper()} on TransactionalId" in str(problem.hint)
    operations = "--operation Describe --operation Write" if operation == "describe" else "--operation Write"
    line = f"--allow-principal User:alice {operations} --transactional-id g-c-0"
    assert line in str(problem.hint)


def test_a_lost_answer_is_sent_again_and_the_result_is_true(stage: Stage) -> None:
    stage.cluster.lose_answers("InitProducerId")
    report = stage.fence("g-c-0")
    assert outcomes(report) == {"g-c-0": "fenced"}
    now = stage.cluster.state.transactions["g-c-0"]
    assert row(report, "g-c-0")["after"] == {"producer_id": now.producer_id, "producer_epoch": now.producer_epoch}


def test_at_the_deadline_the_coordinator_is_asked_what_it_has(stage: Stage) -> None:
    """An abort that does not end in time: unconfirmed, with the state that DescribeTransactions gives."""
    stage.cluster.state.abort_rounds = 10**6
    stage.timeout_s = 0.7
    report = stage.fence("g-c-0", "g-c-1")
    assert outcomes(report) == {"g-c-0": "fenced", "g-c-1": "unconfirmed"}
    assert "now PrepareAbort" in row(report, "g-c-1")["error"]["message"]
    assert report.exit_code == ExitCode.PARTIAL
    assert codes(report) == ["unconfirmed"]


def route(*answers: FenceAnswer | BaseException) -> Callable[[App, Sequence[str]], Iterator[FenceAnswer]]:
    """A way of fencing that gives these answers, then breaks as told."""

    def give(_app: App, _ids: Sequence[str]) -> Iterator[FenceAnswer]:
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            yield answer

    return give


def test_ctrl_c_reports_what_was_done(stage: Stage) -> None:
    app = stage.app()
    plan = plan_fence(app, FenceRequest(("g-c-0", "g-d-0", "nosuch")))
    report = apply_fence(app, plan, route=route(FenceAnswer("g-c-0", None, 1, 5), KeyboardInterrupt()))
    assert outcomes(report) == {"g-c-0": "fenced", "g-d-0": "unconfirmed", "nosuch": "skipped_unknown"}
    assert report.exit_code == ExitCode.INTERRUPTED
    assert "1 id is fenced, 1 have no answer" in report.problems[0].message


def test_what_breaks_half_way_does_not_hide_what_was_done(stage: Stage) -> None:
    app = stage.app()
    plan = plan_fence(app, FenceRequest(("g-c-0", "g-d-0")))
    report = apply_fence(app, plan, route=route(FenceAnswer("g-c-0", None, 1, 5), UnreachableError("all brokers gone")))
    assert outcomes(report) == {"g-c-0": "fenced", "g-d-0": "unconfirmed"}
    assert report.exit_code == ExitCode.PARTIAL
    assert report.problems[0].message == "all brokers gone"


def test_an_answer_read_back_is_marked_so(stage: Stage) -> None:
    """The answer was lost for good, but the coordinator shows our mark and a new epoch."""

    def lose(app: App, ids: Sequence[str]) -> Iterator[FenceAnswer]:
        with NativeTransactionAdmin(app.target.require_client(), deadline=app.deadline) as admin:
            for answer in admin.fence(ids, transaction_timeout_ms=30_000):
                yield FenceAnswer(answer.transactional_id, None, confirmed=False)

    app = stage.app()
    report = apply_fence(app, plan_fence(app, FenceRequest(("g-c-0",))), route=lose)
    assert (row(report, "g-c-0")["outcome"], row(report, "g-c-0")["confirmed_by"]) == ("fenced", "read_back")
    assert row(report, "g-c-0")["after"] == {"producer_id": 1, "producer_epoch": 5}
    assert report.exit_code == ExitCode.OK


def test_many_ids_give_rows_in_the_order_asked(stage: Stage) -> None:
    ids = [f"many-{number}" for number in range(3000)]
    for number, name in enumerate(ids):
        stage.cluster.state.transactions[name] = FakeTransaction(10_000 + number, 0)
    report = stage.fence(*reversed(ids))
    assert [row["transactional_id"] for row in report.rows] == ids[::-1]
    assert report.summary["counts"] == {"fenced": 3000}
    assert [row["outcome"] for row in report.rows[:2]] == ["fenced", "fenced"]


def test_what_the_native_wire_cannot_authenticate_to_is_planned_blind_only_when_told_to(stage: Stage) -> None:
    """Kerberos: states can't be read, so unknown ids can't be skipped; that must be asked for."""
    app = stage.app()
    kerberos = replace(app.target.require_client(), security_protocol="SASL_PLAINTEXT", sasl_mechanism="GSSAPI")
    app = replace(app, target=replace(app.target, client=kerberos))
    for options in ({}, {"via": "producer"}, {"create_unknown": True}):
        with pytest.raises(UnsupportedError) as caught:
            plan_fence(app, FenceRequest(("g-c-0",), **options))
        assert "--via producer --create-unknown" in str(caught.value.hint)
    blind = FenceRequest(("g-c-0",), via="producer", create_unknown=True, live=True)
    report = plan_fence(app, blind).report(app)
    assert outcomes(report) == {"g-c-0": "would_fence"}
    assert row(report, "g-c-0")["before"] is None
    with pytest.raises(RefusedError, match="Flink"):  # whether it has a transaction open can't be known
        plan_fence(app, replace(blind, transactional_ids=("job-0-7",), live=False))


@pytest.mark.parametrize("options", [{}, {"connector": "c", "tasks": 1}, {"connector": "c", "prefix": "g"}])
def test_connects_own_fencing_takes_one_connector_and_nothing_else(stage: Stage, options: Any) -> None:
    with pytest.raises(UsageError, match="--via connect"):
        stage.plan("g-c-0", via="connect", **options)
