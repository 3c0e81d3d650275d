"""`eosctl txn applications` on brokers in memory: rows, what is kept, what is missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.errors import ExitCode, UnauthorizedError
from eosctl.ports import TopicClient
from eosctl.report import Report
from eosctl.txn.applications.report import ApplicationsRequest, list_applications
from eosctl.wire.error_codes import CLUSTER_AUTHORIZATION_FAILED
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.transactions import scene
from tests.fakes.txn_stage import Stage, txn_stage
from tests.schema_check import faults_of

LOOK = ApplicationsRequest()


@pytest.fixture
def stage() -> Stage:
    """Group g with an open transaction of g-c-1, a Flink sink, and what nobody makes."""
    built = txn_stage()
    state = built.cluster.state
    state.settings["transactional.id.expiration.ms"] = "604800000"
    for number in range(1, 31):
        state.transactions[f"sink-0-{number}"] = FakeTransaction(100 + number, 0, timeout_ms=30_000)
    return built


@pytest.fixture
def app(stage: Stage, tmp_path: Path) -> App:
    return replace(stage.app, state_dir=tmp_path / "state")


def by_name(report: Report) -> dict[str, Any]:
    assert faults_of(json.loads(json.dumps(report.envelope()))) == []
    return {row.application: row for row in report.rows}


def test_rows_of_applications(app: App) -> None:
    report = list_applications(app, LOOK)
    rows = by_name(report)
    assert {name: (row.kind, row.ids, row.open) for name, row in rows.items()} == {
        "connect-cluster-g": ("connect", 1, 0),
        "g-c": ("connect", 2, 1),
        "sink": ("flink-sink", 30, 0),
        "zzz": ("unknown", 1, 0),
    }
    assert (rows["g-c"].oldest_open, rows["g-c"].connector, rows["g-c"].sure) == ("g-c-1", "c", False)
    assert rows["sink"].described == 20
    assert (rows["sink"].timeout_ms_min, rows["sink"].timeout_ms_max) == (30_000, 30_000)
    assert (report.summary.max_timeout_ms, report.summary.expiration_ms) == (900_000, 604_800_000)
    assert report.exit_code == ExitCode.OK


def test_every_id_is_described_if_asked_for(app: App) -> None:
    assert by_name(list_applications(app, ApplicationsRequest(describe_all=True)))["sink"].described == 30


def test_growth_is_measured_from_the_look_before(app: App, stage: Stage) -> None:
    first = list_applications(app, LOOK)
    assert (first.summary.last_look, by_name(first)["sink"].grown_by) == (None, None)
    for number in range(31, 91):
        stage.cluster.state.transactions[f"sink-0-{number}"] = FakeTransaction(200 + number, 0)
    for request in (ApplicationsRequest(remember=False), LOOK):  # the former keeps nothing
        later = list_applications(app, request)
        assert (by_name(later)["sink"].grown_by, by_name(later)["sink"].remarks) == (60, ["ids_grow"])
        assert [problem.code for problem in later.problems] == ["ids_grow"]
    assert by_name(list_applications(app, LOOK))["sink"].grown_by == 0


def test_clusters_are_counted_apart(app: App, stage: Stage) -> None:
    list_applications(app, LOOK)
    stage.cluster.state.cluster_id = "a/../b"
    assert list_applications(app, LOOK).summary.last_look is None
    assert sorted(path.name for path in (app.state_dir / "applications").iterdir()) == [
        "a%2F..%2Fb.json",
        "fake-cluster-id.json",
    ]


@pytest.mark.parametrize(
    "content", ["", "[]", '{"looked_at_ms": 1}', '{"looked_at_ms":1,"ids":{"a":-1}}', "\x00", "[" * 9999]
)
def test_what_is_kept_and_can_t_be_read_counts_as_no_look(app: App, content: str) -> None:
    list_applications(app, LOOK)
    (kept,) = (app.state_dir / "applications").iterdir()
    kept.write_text(content)
    assert list_applications(app, LOOK).summary.last_look is None
    assert list_applications(app, LOOK).summary.last_look is not None


def test_a_state_folder_that_can_t_be_written_is_a_warning(app: App) -> None:
    app.state_dir.write_text("not a folder")
    report = list_applications(app, LOOK)
    assert [(problem.code, problem.severity) for problem in report.problems] == [("look_not_kept", "warning")]
    assert report.exit_code == ExitCode.OK


def test_a_look_with_ids_missing_is_not_kept(app: App, stage: Stage) -> None:
    """What is missing now would look new at the next look."""
    stage.cluster.fail_next("ListTransactions", CLUSTER_AUTHORIZATION_FAILED)
    report = list_applications(app, LOOK)
    assert report.exit_code == ExitCode.PARTIAL
    assert not (app.state_dir / "applications").exists()


def test_settings_that_may_not_be_read_are_a_warning(app: App) -> None:
    def no_right(_app: App) -> TopicClient:
        raise UnauthorizedError("no DESCRIBE_CONFIGS")

    report = list_applications(replace(app, open_topics=no_right), LOOK)
    assert [(problem.code, problem.severity) for problem in report.problems] == [("not_checked", "warning")]
    assert (report.summary.max_timeout_ms, report.exit_code) == (None, ExitCode.OK)


def test_groups_that_may_not_be_listed_prove_nothing(app: App, stage: Stage) -> None:
    stage.group_id = None
    rows = by_name(list_applications(replace(app, target=replace(app.target, group_id=None)), LOOK))
    assert (rows["connect-cluster-g"].sure, rows["g-c"].kind) == (False, "ambiguous")


def test_text(invoke: Callable[..., Any], golden: Callable[[str, str], None]) -> None:
    with scene() as built:
        built.brokers.state.add_topic("__transaction_state", 50)
        outcome = invoke("txn", "applications", "--no-remember", *built.flags, **built.surroundings)
    golden("txn/applications.txt", outcome.stdout)
    assert outcome.exit_code == 0, outcome.stderr
