"""task-counts operations over a cluster in memory: what is read, what degrades honestly, what is refused."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from eosctl.app import App
from eosctl.core.records import Record, record_line
from eosctl.core.transactions import RawGroup
from eosctl.errors import (
    EosctlError,
    ExitCode,
    InputFileError,
    NotFoundError,
    UnauthorizedError,
    UnreachableError,
    UsageError,
)
from eosctl.output import render_report
from eosctl.report import Report, plain
from eosctl.task_counts.gather import (
    list_task_counts,
    replay_file,
    replay_topic,
    show_task_counts,
    validate_task_counts,
)
from tests.fakes.config_topic import CONFIG_TOPIC, config_records, created
from tests.fakes.config_world import ConfigWorld

URL = "http://w1:8083"


def app_of(world: ConfigWorld, *, group_id: str | None = "g", urls: tuple[str, ...] = (URL,)) -> App:
    return world.app(timeout_s=10, group_id=group_id, connect_urls=urls)


def healthy(**changes: Any) -> ConfigWorld:
    values: dict[str, Any] = {
        "records": config_records(*created("a", 2, record=2), *created("b", 1, record=1)),
        "known_ids": ["g-a-0", "g-a-1", "g-b-0", "x-a-0"],
        "connectors": {"a": "source", "b": "source"},
        "modes": {URL: "enabled"},
    }
    return ConfigWorld(**{**values, **changes})


def empty() -> ConfigWorld:
    """A cluster with a config topic, and no worker."""
    return ConfigWorld()


def test_list_has_one_row_per_connector_with_its_alive_ids() -> None:
    report = list_task_counts(app_of(healthy()))
    assert [(row.connector, row.recorded, row.alive_ids) for row in report.rows] == [
        ("a", 2, ["g-a-0", "g-a-1"]),
        ("b", 1, ["g-b-0"]),
    ]
    assert report.target == {"kafka_cluster_id": "cluster-1", "group_id": "g"}
    assert report.summary.checked_against_connect is True
    assert (report.problems, report.exit_code) == ([], ExitCode.OK)


@pytest.mark.parametrize("door", ["open", "list_transactions"])
@pytest.mark.parametrize("error", [UnauthorizedError("no DESCRIBE", hint="grant it"), UnreachableError("no broker")])
def test_ids_that_cannot_be_listed_are_null_and_said_to_be(door: str, error: EosctlError) -> None:
    report = list_task_counts(app_of(healthy(faults={door: error})))
    assert [row.alive_ids for row in report.rows] == [None, None]
    unseen = ["alive_ids_unknown"]
    if door == "open" and isinstance(error, UnreachableError):  # nor does any member show whose the worker is
        unseen.append("connect_not_asked")
    assert [(each.code, each.severity) for each in report.problems] == [(code, "warning") for code in unseen]
    assert error.message in report.problems[0].message


def test_the_next_worker_is_asked_when_one_does_not_answer() -> None:
    world = healthy(modes={URL: "enabled", "http://w2:8083": "enabled"})
    world.connect.down.add(URL)
    report = list_task_counts(app_of(world, urls=(URL, "http://w2:8083")))
    assert [problem.code for problem in report.problems] == ["connect_not_asked"]
    assert report.summary.checked_against_connect is True


def test_a_group_without_workers_cannot_be_compared_and_that_is_said() -> None:
    report = list_task_counts(app_of(healthy(modes={}), urls=()))
    assert [(problem.code, problem.severity) for problem in report.problems] == [("connect_not_asked", "warning")]
    assert report.summary.checked_against_connect is False


@pytest.mark.parametrize("read", [list_task_counts, lambda app: validate_task_counts(app, strict=True)])
@pytest.mark.parametrize(
    ("state", "listed", "url_answers", "codes", "error"),
    [
        ("Stable", True, True, [], None),
        ("Empty", True, True, ["connect_not_asked", "group_without_members"], None),
        ("Empty", True, False, ["connect_not_asked"], None),
        ("Dead", True, True, None, "worker at http://w1:8083 answers, but the Connect group 'g' does not exist"),
        ("Dead", True, False, ["connect_not_asked", "group_without_members"], None),
        (
            "Dead",
            False,
            False,
            None,
            "'g' does not exist on this Kafka cluster, and nothing shows that it ever did: no transactional id",
        ),
    ],
)
def test_a_mistyped_group_is_told_from_one_whose_workers_are_stopped(
    read: Callable[[App], Report], state: str, listed: bool, url_answers: bool, codes: list[str] | None, error: str
) -> None:
    """`-g nope` beside the right -u used to look at the right topic with ids that nobody has, and to find nothing."""
    world = healthy() if listed else healthy(known_ids=["x-a-0"])
    if state != "Stable":
        world.brokers.state.groups["g"] = RawGroup("g", state, "connect" if state == "Empty" else "", "", ())
    if not url_answers:
        world.connect.down.add(URL)
    if codes is None:
        with pytest.raises(NotFoundError, match=error):
            read(app_of(world))
        return
    assert sorted(problem.code for problem in read(app_of(world)).problems) == codes


def test_a_group_that_may_not_be_described_is_a_warning() -> None:
    world = healthy(faults={"describe_group": UnauthorizedError("no DESCRIBE on Group g")})
    assert [problem.code for problem in list_task_counts(app_of(world)).problems] == ["group_unknown"]


def test_a_config_topic_of_another_group_shows_by_its_connectors() -> None:
    report = list_task_counts(app_of(healthy(connectors={"a": "source", "z": "sink"})))
    assert [problem.code for problem in report.problems] == ["other_connectors"]
    assert "['b']" in report.problems[0].message
    assert "['z']" in report.problems[0].message


def test_connect_decides_what_is_a_sink() -> None:
    world = healthy(records=config_records(*created("a", 1)), connectors={"a": "sink"})
    (row,) = list_task_counts(app_of(world)).rows
    assert (row.type, row.findings) == ("sink", [])


def test_an_open_transaction_on_the_topic_is_a_warning() -> None:
    report = list_task_counts(app_of(healthy(open_from=4)))
    assert [problem.code for problem in report.problems] == ["open_transaction"]
    assert [row.connector for row in report.rows] == ["a"]


def test_show_is_about_one_connector_or_says_that_there_is_none() -> None:
    assert [row.connector for row in show_task_counts(app_of(healthy()), "b").rows] == ["b"]
    with pytest.raises(NotFoundError, match="no trace of a connector 'nope'"):
        show_task_counts(app_of(healthy()), "nope")


@pytest.mark.parametrize(
    ("pairs", "strict", "exit_code"),
    [
        (created("a", 2, record=2), False, ExitCode.OK),
        (created("a", 2, record=1), False, ExitCode.FINDINGS),
        (created("a", 2), False, ExitCode.FINDINGS),
        ([*created("a", 2, record=2), ("connector-a", None), ("target-state-a", None)], False, ExitCode.OK),
        ([*created("a", 2, record=2), ("connector-a", None), ("target-state-a", None)], True, ExitCode.FINDINGS),
        ([], True, ExitCode.OK),
    ],
)
def test_validate_exits_3_on_findings_and_strict_counts_info(
    pairs: list[tuple[str, object]], strict: bool, exit_code: ExitCode
) -> None:
    world = ConfigWorld(records=config_records(*pairs), modes={URL: "enabled"})
    assert validate_task_counts(app_of(world), strict=strict).exit_code == exit_code


def test_a_group_must_be_named_but_not_for_a_replay() -> None:
    with pytest.raises(UsageError):
        list_task_counts(app_of(healthy(), group_id=None))
    assert replay_topic(app_of(healthy(), group_id=None)).exit_code == ExitCode.OK


def lines(records: list[Record]) -> list[bytes]:
    return [record_line(record).encode() for record in records]


def test_replay_of_a_file_is_in_offset_order_whatever_the_order_of_its_lines() -> None:
    app, records = app_of(empty(), group_id=None), config_records(*created("a", 2, record=2))
    report = replay_file(app, lines(records), name="f")
    assert report.data.state == replay_file(app, reversed(lines(records)), name="f").data.state
    assert plain(report.summary) == {"connectors": 1, "ignored": 0, "offset": 5}
    assert report.rows[0].task_ids == [0, 1]


def test_lines_without_an_offset_follow_each_other() -> None:
    records = [record._replace(offset=-1) for record in config_records(*created("a", 2, record=2))]
    report = replay_file(app_of(empty()), lines(records), name="f")
    assert (report.summary.offset, report.rows[0].task_count_record) == (5, 2)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([b"nonsense"], "f, line 1: not a record: not JSON at column 1"),
        (
            [
                b'{"topic":"t","partition":0,"key":"a","value":null}',
                b'{"topic":"t","partition":1,"key":"a","value":null}',
            ],
            "more than one topic or partition: t-0 and t-1",
        ),
    ],
)
def test_a_file_that_is_no_config_topic_is_refused(content: list[bytes], words: str) -> None:
    with pytest.raises(InputFileError, match=words):
        replay_file(app_of(empty()), content, name="f")


def test_replay_of_the_topic_names_connectors_that_only_aborted_records_make() -> None:
    """An aborted create comes alive on workers that are preparing or disabled: they read uncommitted."""
    world = healthy(aborted=[Record(CONFIG_TOPIC, 0, -1, -1, b"connector-ghost", b'{"properties":{}}')])
    offset = len(world.records)
    report = replay_topic(app_of(world))
    assert report.data.differs_when_uncommitted == ["ghost"]
    assert [problem.code for problem in report.problems] == ["aborted_records_matter"]
    assert "ghost" not in {row.connector for row in report.rows}
    assert plain(report.data.aborted_records) == [
        {
            "offset": offset, "key": "connector-ghost", "value": {"properties": {}}, "newest": True, "differs": True,
            "committed": None,
        }
    ]  # fmt: skip


def test_replay_of_the_topic_says_of_each_aborted_record_what_is_committed_in_its_place() -> None:
    """Connectors that differ were named; which records make them differ was not, nor one that changes a password."""
    records = config_records(*created("a", 2, record=2, config={"db.password": "old"}))
    offset = len(records)
    config = {"properties": {"name": "a", "connector.class": "F", "db.password": "new"}}
    aborted = [
        Record(CONFIG_TOPIC, 0, offset + at, -1, key, value)
        for at, (key, value) in enumerate(
            [
                (b"connector-a", json.dumps(config).encode()),
                (b"tasks-fencing-a", b'{"task-count":1}'),
                (b"tasks-fencing-a", b'{"task-count": 2}'),
                (b"connector-b", None),
                (b"session-key", b'{"key":"c2VjcmV0","algorithm":"HmacSHA256"}'),
            ]
        )
    ]
    report = replay_topic(app_of(healthy(records=records, aborted=aborted)))
    said = plain(report.data.aborted_records)
    assert [(each["offset"] - offset, each["key"], each["newest"], each["differs"]) for each in said] == [
        (0, "connector-a", True, True),
        (1, "tasks-fencing-a", False, True),
        (2, "tasks-fencing-a", True, False),
        (3, "connector-b", True, False),
        (4, "session-key", True, True),
    ]
    assert said[0]["value"]["properties"]["db.password"] == "***"
    assert said[0]["committed"]["offset"] == 0
    assert said[2]["committed"] == {"offset": offset - 1, "value": {"task-count": 2}}
    assert report.data.differs_when_uncommitted == ["a"]
    assert not [secret for secret in ("c2VjcmV0", "new", "old") if f'"{secret}"' in json.dumps(report.envelope())]
    stream = io.StringIO()
    render_report(report, output="text", stream=stream, color=False)
    lines = [line for line in stream.getvalue().splitlines() if line.startswith("aborted ")]
    assert [line.split(":")[0] for line in lines] == [
        f"aborted connector-a at offset {offset}", f"aborted session-key at offset {offset + 4}"
    ]  # fmt: skip
    assert lines[1].endswith("; nothing committed")


def test_while_a_transaction_is_open_nothing_is_called_aborted() -> None:
    world = healthy(records=config_records(*created("a", 1, record=1)), open_from=3)
    assert replay_topic(app_of(world)).data.aborted_records == []
