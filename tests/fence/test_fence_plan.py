"""What `fence` would do: which ids, in which state, alive or not, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.core.ids import TransactionalId
from eosctl.deadline import Deadline
from eosctl.errors import ExitCode, NotFoundError, RefusedError, UnsupportedError, UsageError
from eosctl.fence.gather import FenceRequest, recorded_connectors, restart_commands
from eosctl.fence.plan import apply_fence, plan_fence, plan_recorded
from eosctl.kafka.transactions.admin import NativeTransactionAdmin
from eosctl.wire import error_codes
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.config_topic import created
from tests.fakes.fence_stage import Stage, outcomes, row
from tests.reports import codes


def test_a_plan_shows_states_and_changes_nothing(stage: Stage) -> None:
    report = stage.plan("g-c-1", "g-c-0", "nosuch", "g-c-0")
    assert outcomes(report) == {"g-c-1": "would_fence", "g-c-0": "would_fence", "nosuch": "skipped_unknown"}
    assert (report.kind, report.exit_code) == ("fence-plan", ExitCode.OK)
    before = row(report, "g-c-0")["before"]
    assert [before[name] for name in ("state", "producer_id", "producer_epoch", "age_ms")] == ["Empty", 1, 4, None]
    assert 0 <= row(report, "g-c-1")["before"]["age_ms"] < 60_000
    assert row(report, "g-c-1")["owner"] == {"kind": "task", "connector": "c", "task": 1, "application": None}
    assert row(report, "nosuch")["before"] is None
    assert report.summary.counts == {"would_fence": 2, "skipped_unknown": 1}
    assert stage.brokers.count("InitProducerId") == 0


def test_the_second_plan_recognises_what_the_first_run_did(stage: Stage) -> None:
    stage.fence("g-c-0", "g-c-1")
    again = stage.plan("g-c-0", "g-c-1", "g-d-0")
    assert [row.already_fenced for row in again.rows] == [True, True, False]
    assert set(outcomes(again).values()) == {"would_fence"}
    assert again.summary.already_fenced == 2


def test_ids_by_prefix_and_pattern_are_sorted_and_after_the_given_ones(stage: Stage) -> None:
    assert list(outcomes(stage.plan("g-d-0", prefix="g-"))) == ["g-d-0", "g-c-0", "g-c-1"]
    assert list(outcomes(stage.plan(pattern="g-.-0"))) == ["g-c-0", "g-d-0"]
    assert list(outcomes(stage.plan(prefix="g-", pattern=".*-1"))) == ["g-c-1"]
    assert list(outcomes(stage.plan(pattern="g-c"))) == []  # the whole id must match
    stage.brokers.state.transactions["x\ny"] = FakeTransaction(50, 0)
    assert list(outcomes(stage.plan(pattern="x.y"))) == ["x\ny"]
    stage.brokers.fail_next("ListTransactions", error_codes.UNKNOWN_SERVER_ERROR)
    assert codes(stage.plan(prefix="g-")) == ["not_checked"]


@pytest.mark.parametrize(
    ("ids", "options", "step"),
    [
        ((), {}, "Give ids, --from-file, --prefix, --match or --connector"),
        ((), {"tasks": 2}, "Name the connector"),
        (("",), {}, "None"),
        ((), {"prefix": ""}, "None"),
        ((), {"pattern": "("}, "None"),
        ((), {"connector": ""}, "None"),
    ],
)
def test_requests_that_name_nothing(stage: Stage, ids: Sequence[str], options: Any, step: str) -> None:
    with pytest.raises(UsageError) as caught:
        stage.plan(*ids, **options)
    assert str(caught.value.hint).startswith(step)


def test_a_connectors_ids_come_from_its_task_count_record(stage: Stage) -> None:
    """Connect fences the recorded tasks, not the present ones."""
    stage.configs(created("c", 1, record=3))
    report = stage.plan(connector="c")
    assert list(outcomes(report)) == ["g-c-0", "g-c-1", "g-c-2"]
    assert row(report, "g-c-2")["outcome"] == "skipped_unknown"
    assert [(each.owner.kind, each.owner.task) for each in report.rows] == [("task", task) for task in range(3)]


def test_tasks_overrides_the_record_and_says_so(stage: Stage) -> None:
    stage.configs(created("c", 1, record=3))
    report = stage.plan(connector="c", tasks=1)
    assert list(outcomes(report)) == ["g-c-0"]
    assert codes(report) == ["task_count_overridden"]
    assert outcomes(stage.plan(connector="nosuch", tasks=1)) == {"g-nosuch-0": "skipped_unknown"}


def test_what_another_command_has_read_is_planned_and_its_refusal_names_the_command_of_the_flags(stage: Stage) -> None:
    stage.configs(created("c", 1, record=1))
    connector = recorded_connectors(stage.app())["c"]
    stage.configs(created("c", 2, record=2))
    assert plan_recorded(stage.app(), connector).wanted() == ["g-c-0"]
    stage.runs(("c", 0))
    with pytest.raises(RefusedError, match="runs task 0 of connector c") as caught:
        plan_recorded(stage.app(), connector)
    assert str(caught.value.hint).endswith("These are options of `eosctl fence`.")


@pytest.mark.parametrize("records", [(), created("c", 2, record=None)], ids=["no connector", "no record"])
def test_a_connector_without_a_record_is_not_found(stage: Stage, records: Any) -> None:
    stage.configs(records)
    with pytest.raises(NotFoundError, match="no task-count record") as caught:
        stage.plan(connector="c")
    assert "--tasks" in str(caught.value.hint)


def test_a_connector_whose_name_makes_its_id_look_like_a_leaders(stage: Stage) -> None:
    """Group connect, connector cluster-x: connect-cluster-x-0 was refused as the leader of group x-0."""
    stage.asked_group = "connect"
    stage.brokers.state.transactions["connect-cluster-x-0"] = FakeTransaction(9, 0)
    assert outcomes(stage.plan(connector="cluster-x", tasks=1)) == {"connect-cluster-x-0": "would_fence"}
    stage.other_group("x-0", "http://x1:8083")
    with pytest.raises(RefusedError, match="leader") as caught:
        stage.plan("connect-cluster-x-0")
    assert re.findall("--[a-z-]+", str(caught.value.hint)) == ["--allow-leader", "--connector"]


@pytest.mark.parametrize("flags", [{}, {"live": True, "unknown_liveness": True}])
def test_tasks_of_a_group_called_connect_cluster_are_no_leaders(stage: Stage, flags: Any) -> None:
    """Many distributions call their group so: all its ids were ambiguous, and --allow-leader lifted too much."""
    stage.asked_group = "connect-cluster"
    ids = [f"connect-cluster-c-{task}" for task in range(2)]
    stage.brokers.state.transactions |= {each: FakeTransaction(number, 0) for number, each in enumerate(ids, 50)}
    report = stage.plan(prefix="connect-cluster-c-", **flags)
    assert outcomes(report) == dict.fromkeys(ids, "would_fence")
    assert row(report, ids[1])["owner"] == {"kind": "task", "connector": "c", "task": 1, "application": None}
    assert "leader_id" not in codes(report)
    stage.brokers.state.transactions["connect-cluster-connect-cluster"] = FakeTransaction(60, 0)
    with pytest.raises(RefusedError, match="connect-cluster-connect-cluster, connect-cluster-g may be the id"):
        stage.plan(prefix="connect-cluster-", **flags)


@pytest.mark.parametrize(("known", "kind"), [(None, "ambiguous"), ("c", "ambiguous"), ("d", "other")])
def test_an_id_is_ambiguous_where_a_group_fits_and_a_connector_may(stage: Stage, known: str | None, kind: str) -> None:
    """Group connect-cluster with connector c, and a group c-0."""
    stage.asked_group = "connect-cluster"
    stage.other_group("c-0", "http://x1:8083")
    stage.brokers.state.transactions["connect-cluster-c-0"] = FakeTransaction(50, 0)
    if known is not None:
        stage.configs(created(known, 1))
    with pytest.raises(RefusedError, match="may be the id of a Connect leader"):
        stage.plan("connect-cluster-c-0")
    assert row(stage.plan("connect-cluster-c-0", allow_leader=True), "connect-cluster-c-0")["owner"]["kind"] == kind


def test_a_running_task_of_a_group_called_connect_cluster_is_protected(stage: Stage) -> None:
    """Without -g, --allow-leader was needed for each of its ids, and lifted what protects tasks."""
    stage.asked_group = None
    stage.other_group("connect-cluster", "http://x1:8083").add("c")
    stage.brokers.state.transactions |= {f"connect-cluster-c-{task}": FakeTransaction(50 + task, 0) for task in (0, 1)}
    for flags in ({}, {"allow_leader": True}):
        with pytest.raises(RefusedError, match="of group connect-cluster runs task 0 of connector c"):
            stage.plan("connect-cluster-c-0", **flags)
    assert outcomes(stage.plan("connect-cluster-c-1")) == {"connect-cluster-c-1": "would_fence"}


@pytest.mark.parametrize("state", ["RUNNING", "PAUSED", "RESTARTING"])
def test_a_live_task_is_refused_with_names(stage: Stage, state: str) -> None:
    stage.runs(("c", 1), state=state)
    with pytest.raises(RefusedError, match="worker w1:8083 runs task 1 of connector c") as caught:
        stage.plan("g-c-0", "g-c-1")
    assert "--live" in str(caught.value.hint)
    assert stage.brokers.count("InitProducerId") == 0


def test_a_task_without_a_producer_is_no_obstacle(stage: Stage) -> None:
    stage.runs(("c", 1), state="FAILED")
    assert outcomes(stage.plan("g-c-1")) == {"g-c-1": "would_fence"}


def test_a_task_that_is_about_to_start_may_have_its_producer(stage: Stage) -> None:
    """REST says UNASSIGNED until `SourceTask.start` has returned: its id was fenced without a word."""
    stage.runs(("c", 1), state="UNASSIGNED")
    with pytest.raises(RefusedError, match="has its producer before") as caught:
        stage.plan("g-c-1")
    assert str(caught.value.hint).startswith("Run again when they are RUNNING or FAILED")
    assert "--unknown-liveness" in str(caught.value.hint)


def test_live_fences_it_and_tells_how_to_restart_without_credentials(stage: Stage) -> None:
    stage.runs(("c", 1))
    report = stage.fence("g-c-1", live=True)
    assert outcomes(report) == {"g-c-1": "fenced"}
    (warning,) = report.problems
    steps = ["Afterwards run:", "eosctl connectors restart --failed -u http://w1:8083 c"]
    assert (warning.severity, [line.strip() for line in str(warning.hint).splitlines()]) == ("warning", steps)


@pytest.mark.parametrize(
    ("urls", "where"),
    [
        (("http://user:pw@w1:8083/", "http://w2:8083"), "http://w1:8083"),
        (("https://lb:8443/",), "https://lb:8443"),
        ((), "http://w1:8083"),
    ],
)
def test_a_restart_command_goes_where_the_user_reaches_the_workers(
    stage: Stage, urls: tuple[str, ...], where: str
) -> None:
    """The worker's own address may be one of its network; without any other it has to do."""
    stage.runs(("c", 1))
    app = stage.app()
    plan = plan_fence(app, FenceRequest((TransactionalId("g-c-1"),), live=True))
    app = replace(app, target=replace(app.target, connect_urls=urls))
    (command,) = restart_commands(app, plan.items)
    assert command == f"eosctl connectors restart --failed -u {where} c"


@pytest.mark.parametrize(("tasks", "more"), [(5, ""), (7, " and 2 more")])
def test_of_many_tasks_some_are_named_and_all_are_counted(stage: Stage, tasks: int, more: str) -> None:
    stage.runs(*(("e", task) for task in range(tasks)))
    for task in range(tasks):
        stage.brokers.state.transactions[f"g-e-{task}"] = FakeTransaction(50 + task, 0)
    named = f"cannot fence g-e-0, g-e-1, .*g-e-4{more}: .* runs task 4 of connector e{more} now"
    with pytest.raises(RefusedError, match=named):
        stage.plan(prefix="g-e-")


def test_a_restart_command_quotes_the_connectors_name(stage: Stage) -> None:
    stage.runs(("a b/c", 0))
    stage.brokers.state.transactions["g-a b/c-0"] = FakeTransaction(11, 0)
    app = stage.app()
    plan = plan_fence(app, FenceRequest((TransactionalId("g-a b/c-0"),), live=True))
    assert restart_commands(app, plan.items)[0].endswith(" 'a b/c'")


@pytest.mark.parametrize("live", [False, True])
def test_the_leader_id_is_refused_alive_or_not(stage: Stage, live: bool) -> None:
    with pytest.raises(RefusedError, match="connect-cluster-g may be"):
        stage.plan("connect-cluster-g", live=live)
    report = stage.fence("connect-cluster-g", allow_leader=True)
    assert outcomes(report) == {"connect-cluster-g": "fenced"}
    assert codes(report) == ["leader_id"]
    assert str(report.problems[0].hint).startswith("PUT the unchanged config of any connector")


def test_what_flink_may_have_prepared_is_refused_and_said(stage: Stage) -> None:
    """A prefix took the open transactions of a Flink job with it, whose checkpointed records were then gone."""
    stage.brokers.state.open_transaction("job-0-7", ("t", 1), epoch=2)
    stage.brokers.state.transactions["job-0-6"] = FakeTransaction(21, 0, "CompleteCommit")
    for waived in ({}, {"live": True}, {"unknown_liveness": True}):
        with pytest.raises(RefusedError, match=r"cannot fence job-0-7: .*Flink") as caught:
            stage.plan(prefix="job-", **waived)
        assert re.findall("--[a-z-]+", str(caught.value.hint)) == ["--discard-prepared", "--connector"]
    assert outcomes(stage.fence("job-0-6")) == {"job-0-6": "fenced"}
    report = stage.fence("job-0-7", discard_prepared=True)
    assert (outcomes(report), codes(report)) == ({"job-0-7": "fenced"}, ["prepared_transactions"])
    (warning,) = report.problems
    assert (warning.severity, "can't be written again" in str(warning.hint)) == ("warning", True)


def test_an_id_that_may_be_flinks_or_a_tasks_is_a_tasks_where_its_connector_is_known(stage: Stage) -> None:
    stage.brokers.state.open_transaction("g-c-1-0", ("t", 1), epoch=2)
    with pytest.raises(RefusedError, match="Flink"):
        stage.plan("g-c-1-0")
    assert outcomes(stage.plan(connector="c-1", tasks=1)) == {"g-c-1-0": "would_fence"}
    stage.runs(("c-1", 0), state="FAILED")
    assert outcomes(stage.plan("g-c-1-0")) == {"g-c-1-0": "would_fence"}


class _WithKerberos(NativeTransactionAdmin):
    """What a librdkafka with Kerberos comes to: the cluster can be asked for its id, and nothing of transactions."""

    def cluster_id(self) -> str:
        return "fake-cluster-id"


def test_what_the_native_wire_cannot_authenticate_to_is_planned_blind_only_when_told_to(stage: Stage) -> None:
    """Kerberos: states can't be read, so unknown ids can't be skipped; that must be asked for."""
    app = stage.app()
    kerberos = replace(app.target.require_client(), security_protocol="SASL_PLAINTEXT", sasl_mechanism="GSSAPI")
    app = replace(
        app,
        target=replace(app.target, client=kerberos),
        open_transactions=lambda app: _WithKerberos(kerberos, deadline=app.deadline),
    )
    for options in ({}, {"via": "producer"}, {"create_unknown": True}):
        with pytest.raises(UnsupportedError) as caught:
            plan_fence(app, FenceRequest((TransactionalId("g-c-0"),), **options))
        assert "--via producer --create-unknown" in str(caught.value.hint)
    blind = FenceRequest((TransactionalId("g-c-0"),), via="producer", create_unknown=True, unknown_liveness=True)
    report = plan_fence(app, blind).report(app)
    assert outcomes(report) == {"g-c-0": "would_fence"}
    assert row(report, "g-c-0")["before"] is None
    with pytest.raises(RefusedError, match="Flink"):  # whether it has a transaction open can't be known
        plan_fence(app, replace(blind, transactional_ids=(TransactionalId("job-0-7"),)))
    plan = plan_fence(app, replace(blind, live=True))
    late = Deadline.after(0.0, app.clock)  # librdkafka's producers are not even made
    fenced = apply_fence(replace(app, deadline=late, open_transactions=lambda _app: pytest.fail("natively")), plan)
    assert (outcomes(fenced), fenced.exit_code) == ({"g-c-0": "failed"}, ExitCode.UNREACHABLE)


@pytest.mark.parametrize(
    ("ids", "options"),
    [
        ((), {"prefix": "g"}),
        (("g-c-0",), {}),
        (("g-c-0",), {"connector": "c"}),
        ((), {"connector": "c", "tasks": 1}),
        ((), {"connector": "c", "prefix": "g"}),
        ((), {"connector": "c", "pattern": "g.*"}),
    ],
)
def test_connects_own_fencing_takes_one_connector_and_nothing_else(
    stage: Stage, ids: Sequence[str], options: Any
) -> None:
    with pytest.raises(UsageError, match="--via connect"):
        stage.plan(*ids, via="connect", **options)
