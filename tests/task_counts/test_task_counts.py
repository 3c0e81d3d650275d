"""What a leader would fence, and every finding a record can have."""

from __future__ import annotations

from typing import Any

import pytest

from eosctl.core.configs.fold import ConnectorState, fold_config_topic
from eosctl.core.configs.view import differing_connectors, state_document
from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.core.records import Record
from eosctl.core.transactions import TransactionListing, TransactionState
from eosctl.core.workers.connector_entry import plugin_type
from eosctl.report import plain
from eosctl.task_counts.rows import case_row
from eosctl.task_counts.rules import (
    MAX_LISTED_IDS,
    AliveTask,
    Case,
    alive_tasks,
    cases,
    fencing_decision,
    find_problems,
    other_groups,
)
from tests.task_counts.connectors import CONFIG, OPEN, known, state

PENDING = {"pending_fencing": True, "record_offset": 8}


@pytest.mark.parametrize(
    ("changes", "fence_count", "writes"),
    [
        ({}, 0, None),
        ({"pending_fencing": True, "task_count_record": None}, 0, 2),
        ({"pending_fencing": True, "task_count_record": 1, "task_count": 1}, 0, 1),
        ({"pending_fencing": True, "task_count_record": 1, "task_count": 3}, 1, 3),
        ({"pending_fencing": True, "task_count_record": 1, "task_count": 0}, 1, 0),
        ({"pending_fencing": True, "task_count_record": 3, "task_count": 1}, 3, 1),
        ({"pending_fencing": True, "task_count_record": 3, "task_count": 3}, 3, 3),
        ({"pending_fencing": True, "task_count_record": 0, "task_count": 3}, 0, 3),
        ({"pending_fencing": True, "task_count_record": -1, "task_count": 3}, 0, 3),
        ({"pending_fencing": True, "config": None}, 0, None),
    ],
)
def test_the_leader_fences_the_recorded_ids_and_not_the_present_ones(
    changes: dict[str, Any], fence_count: int, writes: int | None
) -> None:
    decision = fencing_decision(state(**changes))
    assert (decision.fence_count, decision.writes) == (fence_count, writes)
    assert decision.reason


@pytest.mark.parametrize(
    ("changes", "alive", "expected"),
    [
        ({}, (known(0), known(1)), []),
        ({}, None, []),
        ({"task_count_record": None, **PENDING}, (), [("missing", "warning")]),
        ({"task_count_record": None, **PENDING}, None, [("missing", "warning")]),
        ({"task_count_record": None, **PENDING}, (known(0),), [("missing", "error")]),
        ({"task_count_record": None, "commit_offset": None}, (), []),  # created STOPPED: nothing ever ran
        ({"task_count_record": None, "task_count": 0}, (), []),  # has no task to fence
        ({"task_count_record": None, "task_count": 1}, (), [("missing", "warning")]),
        ({"task_count_record": 0, "task_count": None}, (known(0),), []),
        ({"forgotten_commit": 3}, (), [("tasks_forgotten", "error")]),
        ({"forgotten_commit": 3, "config": None}, (), [("orphan", "info")]),
        ({"task_count_record": 1}, None, [("too_low", "error")]),
        ({"task_count_record": 1}, (known(1),), [("too_low", "error")]),
        ({}, (known(2, OPEN),), [("too_low", "error")]),
        ({}, (known(2),), []),  # fenced long ago, still listed
        ({"task_count_record": 1, **PENDING}, (known(1),), [("too_low", "warning"), ("mis_ordered", "warning")]),
        ({"task_count_record": 3}, (known(2),), []),
        (PENDING, (), [("mis_ordered", "warning")]),
        ({"task_count": 0, "target_state": "STOPPED", **PENDING}, (known(1),), []),
        ({"task_count": 0, **PENDING}, (), []),
        ({"target_state": "STOPPED", **PENDING}, (), []),
        ({"inconsistent": True}, (), [("incomplete_task_set", "error")]),
        ({"task_count_record": -1}, (), [("too_low", "error"), ("implausible", "error")]),
        ({"task_count_record": 2**31 - 1}, (), [("implausible", "error")]),
        ({"task_count_record": 10_000}, (), []),
        ({"task_count_record": 10_001}, (), [("implausible", "error")]),
        ({"config": None, "task_count": None}, (known(1),), [("orphan", "info")]),
        ({"config": None, "task_count": None}, (known(2, OPEN),), [("too_low", "error"), ("orphan", "info")]),
    ],
)
def test_findings(
    changes: dict[str, Any], alive: tuple[AliveTask, ...] | None, expected: list[tuple[str, str]]
) -> None:
    found = find_problems(Case(state(**changes), "g", alive=alive))
    assert [(finding.code, finding.severity) for finding in found] == expected
    assert all(finding.message and finding.fix for finding in found)


@pytest.mark.parametrize(
    ("changes", "alive", "words"),
    [
        ({"task_count_record": None}, (known(0), known(1)), "and 2 of its ids are known to the coordinators"),
        ({"task_count_record": None}, (), "workers with exactly-once would fence no id"),
        ({"task_count_record": 1}, (), "but the newest task set has 2"),
        ({"task_count_record": 1}, (known(1),), "but g-c-1 beyond it are alive"),
        ({"task_count": 9}, tuple(known(at) for at in range(5)), "but g-c-2, g-c-3, g-c-4 beyond"),
        ({"task_count": 9}, tuple(known(at) for at in range(6)), "but g-c-2, g-c-3, g-c-4, … beyond"),
        ({"inconsistent": True}, (), "names 2 tasks, but not all configs"),
    ],
)
def test_findings_say_how_many_and_which(changes: dict[str, Any], alive: tuple[AliveTask, ...], words: str) -> None:
    [finding] = find_problems(Case(state(**changes), "g", alive=alive))
    assert words in finding.message


def test_a_sink_has_no_record_to_miss() -> None:
    case = Case(state(task_count_record=None, pending_fencing=True), "g", plugin_type="sink", alive=())
    assert find_problems(case) == []
    row = case_row(case)
    never = "a sink connector has no task-count record, and is never fenced"
    assert row.pending_fencing is False, "it was due for ever, for 0 ids"
    assert (row.type, row.decision, row.would_write, row.would_fence) == ("sink", never, None, [])
    assert plain(row.after_next_commit) == {"would_fence_count": 0, "would_fence": [], "reason": never}


def test_ids_are_attributed_by_the_connectors_that_exist() -> None:
    listings = [
        TransactionListing(each, TransactionState.EMPTY, ProducerId(1), 0)
        for each in (
            TransactionalId("other-a-0"),
            TransactionalId("g-a-1"),
            TransactionalId("g-a-0"),
            TransactionalId("g-x-0"),
            TransactionalId("g-a-b-0"),
            TransactionalId("g-a-01"),
            TransactionalId("connect-cluster-g"),
        )
    ]
    alive = alive_tasks(listings, "g", ["a", "a-b"])
    assert {name: [task.task for task in tasks] for name, tasks in alive.items()} == {"a": [0, 1], "a-b": [0]}
    assert alive_tasks(listings, "g", []) == {}


def test_cases_join_what_is_known_of_each_connector() -> None:
    folded = fold_config_topic(
        [
            Record("t", 0, 0, -1, b"connector-c", b'{"properties":{"connector.class":"X"}}'),
            Record("t", 0, 1, -1, b"connector-d", b'{"properties":{"connector.class":"YSink"}}'),
            Record("t", 0, 2, -1, b"tasks-fencing-e", b"{"),
        ]
    )
    listings = [
        TransactionListing(each, TransactionState.EMPTY, ProducerId(1), 0)
        for each in (TransactionalId("g-c-0"), TransactionalId("connect-cluster-h"), TransactionalId("g-x-0"))
    ]
    c, d, e = cases(folded, "g", listings=listings, types={"c": "sink"})
    assert (c.plugin_type, d.plugin_type, e.plugin_type) == ("sink", "sink", "unknown")
    assert (c.alive, d.alive, e.alive) == ((known(0),), (), ())
    assert [record.offset for record in e.ignored] == [2]
    assert (c.ignored, c.group_id, c.other_groups) == ((), "g", frozenset({"h"}))
    assert [case.alive for case in cases(folded, "g")] == [None] * 3, "coordinators that were not asked"
    assert cases(folded, "g")[0].plugin_type == "source"


def test_other_groups_are_known_by_their_leader_ids() -> None:
    listings = [
        TransactionListing(each, TransactionState.EMPTY, ProducerId(1), 0)
        for each in (
            TransactionalId("connect-cluster-g"),
            TransactionalId("connect-cluster-h"),
            TransactionalId("connect-cluster-g-a-0"),
            TransactionalId("g-a-0"),
        )
    ]
    assert other_groups(listings, "g", frozenset({"connect-cluster-g-a-0"})) == {"h"}


@pytest.mark.parametrize(
    ("group", "connector", "others", "words"),
    [
        ("g", "c", frozenset({"h"}), None),
        ("a", "b-c", frozenset({"a-b"}), "connector 'c' of group 'a-b'"),
        ("a-b", "c", frozenset({"a"}), "connector 'b-c' of group 'a'"),
        ("connect-cluster", "foo", frozenset(), "leader id of a group 'foo-0'"),
    ],
)
def test_ids_that_another_group_could_have_too(
    group: str, connector: str, others: frozenset[str], words: str | None
) -> None:
    case = Case(ConnectorState(connector, config={}), group, other_groups=others)
    found = [finding for finding in find_problems(case) if finding.code == "id_collision"]
    assert (words is None and not found) or (words is not None and words in found[0].message)
    assert all(finding.severity == "info" for finding in found)


@pytest.mark.parametrize(
    ("config", "told", "expected"),
    [
        ({"connector.class": "org.x.FileStreamSourceConnector"}, None, "source"),
        ({"connector.class": "FileStreamSinkConnector"}, None, "sink"),
        ({"connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector", "topics": ".*"}, None, "source"),
        ({"connector.class": "MirrorHeartbeatConnector"}, None, "source"),
        ({"connector.class": "com.source.Jdbc", "topics": "a"}, None, "sink"),
        ({"connector.class": "com.sink.Jdbc"}, None, "source"),
        ({"connector.class": "org.Source.Jdbc", "topics": "a"}, None, "sink"),
        ({"connector.class": "org.x.JdbcSource", "topics": "a"}, None, "source"),
        ({"connector.class": "org.x.MirrorCheckpointConnector", "topics": "a"}, None, "source"),
        ({"connector.class": "org.x.Jdbc", "topics.regex": "a.*"}, None, "sink"),
        ({"connector.class": "org.Sink.Jdbc"}, None, "source"),
        ({"topics": "a"}, None, "sink"),
        ({}, None, "source"),
        ({"connector.class": "FileStreamSource"}, "sink", "sink"),
        ({"connector.class": "FileStreamSink"}, "source", "source"),
        ({"connector.class": "FileStreamSink"}, "unknown", "sink"),
        (None, None, "unknown"),
    ],
)
def test_sources_and_sinks_are_told_apart(config: dict[str, object] | None, told: str | None, expected: str) -> None:
    assert plugin_type(config, told) == expected


def test_a_row_names_the_ids_but_not_two_thousand_million_of_them() -> None:
    """A record of 2^31-1 tasks, which anybody can write, used to mean a list of as many ids."""
    row = case_row(Case(state(pending_fencing=True, task_count_record=2**31 - 1), "g"))
    assert row.would_fence_count == 2**31 - 1
    assert len(row.would_fence) == MAX_LISTED_IDS


def test_a_row_has_the_members_of_the_contract() -> None:
    row = plain(case_row(Case(state(task_count=3, task_count_record=2, **PENDING), "g", alive=(known(0),))))
    findings = row.pop("findings")
    assert isinstance(findings, list)
    assert findings[0].keys() == {"code", "severity", "message", "fix"}
    assert row == {
        "connector": "c",
        "type": "source",
        "recorded": 2,
        "record_offset": 8,
        "newest_commit_offset": 10,
        "task_count": 3,
        "target_state": "STARTED",
        "pending_fencing": True,
        "decision": "task configs are newer than the record: fences the 2 recorded",
        "would_write": 3,
        "would_fence_count": 2,
        "would_fence": ["g-c-0", "g-c-1"],
        "after_next_commit": {
            "would_fence_count": 2, "would_fence": ["g-c-0", "g-c-1"], "reason": "fences the 2 recorded",
        },
        "alive_ids": ["g-c-0"],
    }  # fmt: skip


def test_the_state_document_is_plain_data_of_the_contract() -> None:
    folded = fold_config_topic(
        [Record("t", 0, 0, -1, b"connector-c", CONFIG), Record("t", 0, 1, -1, b"nonsense", b"{}")]
    )
    assert state_document(folded) == {
        "offset": 2,
        "connectors": {
            "c": {
                "config": {"connector.class": "FileStreamSource"},
                "target_state": "STARTED",
                "task_count": None,
                "task_ids": [],
                "inconsistent": False,
                "pending_fencing": False,
                "task_count_record": None,
                "task_config_generation": None,
            }
        },
        "ignored": [{"offset": 1, "key": "nonsense", "code": "unknown_key", "reason": "no worker knows this key"}],
        "commits_without_connector": [],
    }


def test_connectors_that_look_different_with_aborted_records_are_named() -> None:
    committed = [Record("t", 0, 0, -1, b"connector-c", CONFIG)]
    ghost = Record("t", 0, 1, -1, b"connector-ghost", CONFIG)
    assert differing_connectors(fold_config_topic(committed), fold_config_topic([*committed, ghost])) == ["ghost"]
    assert differing_connectors(fold_config_topic(committed), fold_config_topic(committed)) == []
