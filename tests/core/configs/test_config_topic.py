"""The fold of the config topic against Kafka's own KafkaConfigBackingStore, by tables, and under random input."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eosctl.core.configs.fold import ConfigState, ConnectorState, fold_config_topic
from eosctl.core.records import Record

VECTORS = Path(__file__).parent / "config_topic_oracle" / "vectors.ndjson"
Pair = tuple[str, str | None]
CONFIG = '{"properties":{"name":"a"}}'
TASK = '{"properties":{"file":"x"}}'


def log(*pairs: Pair) -> list[Record]:
    """Records at offsets 0, 1, 2, …"""
    return [
        Record("connect-configs", 0, offset, -1, key.encode(), None if value is None else value.encode())
        for offset, (key, value) in enumerate(pairs)
    ]


def fold(*pairs: Pair) -> ConfigState:
    return fold_config_topic(log(*pairs))


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("iso-8859-1")


def _as_kafka_tells(connector: ConnectorState) -> dict[str, Any]:
    return {
        "config": connector.config,
        "target_state": connector.target_state,
        "task_count": connector.task_count or 0,
        "task_ids": connector.task_ids,
        "inconsistent": connector.inconsistent,
        "pending_fencing": connector.pending_fencing,
        "task_count_record": connector.task_count_record,
        "task_config_generation": connector.task_config_generation,
    }


@pytest.mark.parametrize("line", VECTORS.read_text(encoding="utf-8").splitlines())
def test_the_fold_ends_where_kafkas_own_class_ends(line: str) -> None:
    vector = json.loads(line)
    state = fold_config_topic(
        Record("c", 0, offset, -1, _bytes(key), _bytes(value)) for offset, key, value in vector["log"]
    )
    assert state.offset == vector["offset"]
    assert state.has_session_key == vector["session_key"]
    assert {name: _as_kafka_tells(connector) for name, connector in state.connectors.items()} == vector["connectors"]
    assert set(vector["threw"]) <= {ignored.offset for ignored in state.ignored}


def test_an_empty_topic_has_offset_minus_one_as_in_a_worker() -> None:
    assert fold() == ConfigState(offset=-1, connectors={}, ignored=())


def test_a_create_with_exactly_once_leaves_nothing_pending() -> None:
    a = fold(
        ("connector-a", CONFIG),
        ("task-a-0", TASK),
        ("commit-a", '{"tasks":1}'),
        ("tasks-fencing-a", '{"task-count":1}'),
    )
    assert a.connectors["a"] == ConnectorState(
        "a", {"name": "a"}, "STARTED", 1, False, False, 1, 0, record_offset=3, commit_offset=2
    )
    assert a.offset == 4


STOP, START = '{"state":"PAUSED","state.v2":"STOPPED"}', '{"state":"STARTED"}'


def config_in(topic: str | None) -> str:
    return json.dumps({"properties": {"name": "a"} if topic is None else {"offsets.storage.topic": topic}})


@pytest.mark.parametrize(
    ("records", "moved_from"),
    [
        ([config_in(None), STOP, config_in("own")], ""),
        ([config_in("own"), STOP, config_in(None)], "own"),
        ([config_in("own"), STOP, config_in("other"), config_in(None)], "own"),
        ([config_in("own"), STOP, config_in("other"), config_in("own")], None),
        ([config_in(None), STOP, config_in("own"), START], None),
        ([config_in(None), STOP, config_in(None)], None),
        ([config_in(None), config_in("own"), STOP], None),
        ([STOP, config_in("own")], None),
        ([config_in(None), START, config_in("own")], None),
    ],
)
def test_a_stopped_connector_whose_offsets_went_elsewhere(records: list[str], moved_from: str | None) -> None:
    keys = dict.fromkeys((STOP, START), "target-state-a")
    state = fold(*((keys.get(each, "connector-a"), each) for each in records))
    assert state.connectors["a"].moved_from == moved_from


def test_deletion_keeps_the_task_count_record_and_nothing_else() -> None:
    state = fold(
        ("connector-a", CONFIG),
        ("task-a-0", TASK),
        ("commit-a", '{"tasks":1}'),
        ("tasks-fencing-a", '{"task-count":1}'),
        ("connector-a", None),
        ("target-state-a", None),
    )
    a = state.connectors["a"]
    assert (a.config, a.target_state, a.task_count, a.task_ids, a.task_count_record) == (None, None, None, [], 1)


def test_a_deleted_connector_without_a_record_is_gone() -> None:
    assert fold(("connector-a", CONFIG), ("connector-a", None), ("target-state-a", None)).connectors == {}


def test_an_incomplete_task_set_is_inconsistent_but_still_pending() -> None:
    a = fold(("connector-a", CONFIG), ("task-a-1", TASK), ("commit-a", '{"tasks":2}')).connectors["a"]
    assert (a.inconsistent, a.task_ids, a.task_count, a.pending_fencing, a.task_config_generation) == (
        True,
        [],
        2,
        True,
        None,
    )


def test_task_configs_wait_for_their_commit_and_are_used_up_by_it() -> None:
    a = fold(
        ("connector-a", CONFIG), ("task-a-0", TASK), ("commit-a", '{"tasks":1}'), ("commit-a", '{"tasks":1}')
    ).connectors["a"]
    assert a.inconsistent


def test_a_stop_raises_the_generation() -> None:
    """STOP commits zero tasks; once any task config was deferred, that counts as a new generation."""
    a = fold(
        ("connector-a", CONFIG), ("task-a-0", TASK), ("commit-a", '{"tasks":1}'), ("commit-a", '{"tasks":0}')
    ).connectors["a"]
    assert (a.task_count, a.task_config_generation, a.inconsistent) == (0, 1, False)


def test_a_commit_before_its_connector_forgets_the_task_set() -> None:
    state = fold(("task-a-0", TASK), ("commit-a", '{"tasks":1}'), ("connector-a", CONFIG))
    assert state.commits_without_connector == (1,)
    assert (state.connectors["a"].task_count, state.connectors["a"].pending_fencing) == (None, False)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('{"state":"PAUSED"}', "PAUSED"),
        ('{"state":"PAUSED","state.v2":"STOPPED"}', "STOPPED"),
        ('{"state":"PAUSED","state.v2":7}', "PAUSED"),
        (None, "STARTED"),
    ],
)
def test_target_states_old_and_new(value: str | None, expected: str) -> None:
    assert fold(("connector-a", CONFIG), ("target-state-a", value)).connectors["a"].target_state == expected


@pytest.mark.parametrize(
    ("key", "value", "code", "connector"),
    [
        ("task-a-0", None, "tombstone", "a"),
        ("tasks-fencing-a", None, "tombstone", "a"),
        ("tasks-fencing-a", "null", "tombstone", "a"),
        ("tasks-fencing-a", '{"task-count":"2"}', "wrong_type", "a"),
        ("tasks-fencing-a", '{"task-count":2.0}', "wrong_type", "a"),
        ("tasks-fencing-a", "[]", "wrong_type", "a"),
        ("tasks-fencing-a", '{"tasks":11}', "kip_text_field", "a"),
        ("task-count-a", '{"tasks":11}', "kip_text_key", "a"),
        ("task-count-a-1", '{"tasks":11}', "kip_text_key", "a-1"),
        ("task-count-a", "{}", "unparsable_key", None),
        ("task-a-0", '{"properties":1}', "wrong_type", "a"),
        ("connector-a", '{"properties":[]}', "wrong_type", "a"),
        ("connector-a", "{", "unparsable", "a"),
        ("target-state-a", '{"state":"BUSY"}', "unknown_state", "a"),
        ("target-state-a", "{}", "wrong_type", "a"),
        ("restart-connector-a", None, "tombstone", "a"),
        ("logger-cluster-a", '{"level":1}', "wrong_type", "a"),
        ("session-key", '{"key":"QUJD"}', "wrong_type", None),
        ("what-is-this", "{}", "unknown_key", None),
    ],
)
def test_what_a_worker_ignores_is_named_with_its_reason(
    key: str, value: str | None, code: str, connector: str | None
) -> None:
    state = fold((key, value))
    assert [(i.offset, i.key, i.code, i.connector) for i in state.ignored] == [(0, key, code, connector)]
    assert state.ignored[0].reason
    assert state.connectors == {}


def test_a_record_without_a_key_is_named() -> None:
    state = fold_config_topic([Record("c", 0, 5, -1, None, b"{}")])
    assert [(i.key, i.code) for i in state.ignored] == [(None, "null_key")]


def test_the_session_key_is_noticed_but_never_kept() -> None:
    state = fold(("session-key", '{"key":"c2VjcmV0","algorithm":"HmacSHA256","creation-timestamp":1}'))
    assert state.has_session_key
    assert "c2VjcmV0" not in repr(state)


_KEYS = st.one_of(
    st.none(),
    st.binary(max_size=12),
    st.builds(
        lambda prefix, name: prefix + name,
        st.sampled_from([b"connector-", b"task-", b"commit-", b"target-state-", b"tasks-fencing-", b"session-key"]),
        st.sampled_from([b"", b"a", b"a-0", b"a-1", b"\xff"]),
    ),
)
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5))
_FIELDS = st.sampled_from(["tasks", "task-count", "properties", "state", "state.v2", "key", "level"])
_VALUES = st.one_of(
    st.none(),
    st.binary(max_size=20),
    st.dictionaries(_FIELDS, st.one_of(_SCALARS, st.dictionaries(st.text(max_size=3), _SCALARS, max_size=2))).map(
        lambda value: json.dumps(value).encode()
    ),
)


@given(st.lists(st.tuples(_KEYS, _VALUES), max_size=25))
def test_the_fold_never_raises(pairs: list[tuple[bytes | None, bytes | None]]) -> None:
    state = fold_config_topic(Record("c", 0, offset, -1, key, value) for offset, (key, value) in enumerate(pairs))
    assert -1 <= state.offset <= len(pairs)
    for connector in state.connectors.values():
        assert len(connector.task_ids) <= len(pairs)


def operation_records(connector: str, operation: str, tasks: int) -> Sequence[Pair]:
    """What a leader writes (seen on Kafka 4.3.1) when a person does `operation`."""
    task_set = [(f"task-{connector}-{task}", TASK) for task in range(tasks)]
    commit: Pair = (f"commit-{connector}", json.dumps({"tasks": tasks}))
    record: Pair = (f"tasks-fencing-{connector}", json.dumps({"task-count": tasks}))
    by_name: dict[str, list[Pair]] = {
        "configure": [(f"connector-{connector}", CONFIG), *task_set, commit, record],
        "configure, not fenced yet": [(f"connector-{connector}", CONFIG), *task_set, commit],
        "stop": [(f"commit-{connector}", '{"tasks":0}'), (f"target-state-{connector}", '{"state.v2":"STOPPED"}')],
        "pause": [(f"target-state-{connector}", '{"state":"PAUSED","state.v2":"PAUSED"}')],
        "delete": [(f"connector-{connector}", None), (f"target-state-{connector}", None)],
    }
    return by_name[operation]


_OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b-1"]),
        st.sampled_from(["configure", "configure, not fenced yet", "stop", "pause", "delete"]),
        st.integers(min_value=0, max_value=3),
    ),
    max_size=15,
)


@settings(max_examples=200)
@given(_OPERATIONS, st.booleans())
def test_compaction_does_not_change_what_workers_hold_of_existing_connectors(
    operations: list[tuple[str, str, int]], tombstones_dropped: bool
) -> None:
    """Generations restart, and traces of deleted connectors differ; configs, tasks, records and pending must not."""
    full = log(*(pair for operation in operations for pair in operation_records(*operation)))
    newest = {record.key: record for record in full}
    compacted = [r for r in full if newest[r.key] is r and not (tombstones_dropped and r.value is None)]
    before, after = fold_config_topic(full).connectors, fold_config_topic(compacted).connectors

    def held(connectors: Any) -> dict[str, Any]:
        return {
            name: {key: value for key, value in _as_kafka_tells(c).items() if key != "task_config_generation"}
            for name, c in connectors.items()
            if c.config is not None
        }

    assert held(after) == held(before)
    records = [
        {n: c.task_count_record for n, c in each.items() if c.task_count_record is not None} for each in (before, after)
    ]
    assert records[0] == records[1]
