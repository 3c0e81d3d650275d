"""Keys and values of the config topic, as Kafka's own classes read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eosctl.core.configs.records import (
    MAX_INT,
    ConfigKey,
    RecordKind,
    UnparsableValueError,
    decode_key_text,
    decode_value,
    int_field,
    parse_key,
    task_count_key,
    task_count_value,
)


@pytest.mark.parametrize(
    ("key", "kind", "name", "task"),
    [
        ("connector-a", RecordKind.CONNECTOR, "a", None),
        ("connector-", RecordKind.CONNECTOR, "", None),
        ("commit-a-b", RecordKind.COMMIT, "a-b", None),
        ("target-state-a", RecordKind.TARGET_STATE, "a", None),
        ("restart-connector-a", RecordKind.RESTART, "a", None),
        ("tasks-fencing-a", RecordKind.TASK_COUNT, "a", None),
        ("logger-cluster-org.x", RecordKind.LOGGER, "org.x", None),
        ("session-key", RecordKind.SESSION_KEY, "", None),
        ("session-key-2", RecordKind.UNKNOWN, "", None),
        ("", RecordKind.UNKNOWN, "", None),
        ("task-a-0", RecordKind.TASK, "a", 0),
        ("task-a-b-12", RecordKind.TASK, "a-b", 12),
        ("task-a-+1", RecordKind.TASK, "a", 1),
        ("task-a-01", RecordKind.TASK, "a", 1),
        ("task-a-1--", RecordKind.TASK, "a", 1),
        ("task--1", RecordKind.TASK, "", 1),
        ("task-a--1", RecordKind.TASK, "a-", 1),
        ("task-a-2147483647", RecordKind.TASK, "a", 2147483647),
        ("task-a-2147483648", RecordKind.TASK, "", None),
        ("task-a-x", RecordKind.TASK, "", None),
        ("task-1", RecordKind.TASK, "", None),
        ("task-", RecordKind.TASK, "", None),
        ("task-count-a", RecordKind.TASK, "", None),
    ],
)
def test_keys_mean_what_a_worker_reads_in_them(key: str, kind: RecordKind, name: str, task: int | None) -> None:
    assert parse_key(key) == ConfigKey(kind, name, task)


def test_a_task_count_key_is_spelled_as_kafka_ships_it() -> None:
    assert task_count_key("é-1") == "tasks-fencing-é-1".encode()
    assert parse_key(decode_key_text(task_count_key("é-1"))) == ConfigKey(RecordKind.TASK_COUNT, "é-1")


def test_key_bytes_that_are_not_utf8_are_replaced_not_refused() -> None:
    assert parse_key(decode_key_text(b"connector-\xff")).name == "\ufffd"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (b"", None),
        (b"null", None),
        (b"  ", None),
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        (b'{"a":1} trailing', {"a": 1}),
        (b'{"a":1,"a":2}', {"a": 2}),
        (b'{"a":007,"b":-01,"c":0,"d":"007","e":1.05}', {"a": 7, "b": -1, "c": 0, "d": "007", "e": 1.05}),
    ],
)
def test_values_are_read_as_jackson_reads_them(value: bytes | None, expected: object) -> None:
    assert decode_value(value) == expected


@pytest.mark.parametrize("value", [b"{", b"\xff", b'{"a":NaN}', b"[" * 100_000, b'{"a":' + b"9" * 5000 + b"}"])
def test_what_jackson_would_refuse_is_unparsable(value: bytes) -> None:
    with pytest.raises(UnparsableValueError):
        decode_value(value)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (3, 3),
        (-1, -1),
        (2**31, -(2**31)),
        (2**32 + 1, 1),
        (2**64 + 1, 1),
        (True, None),
        (1.0, None),
        ("1", None),
        (None, None),
    ],
)
def test_integers_are_narrowed_to_32_bits_and_nothing_else_counts(number: object, expected: int | None) -> None:
    assert int_field({"n": number}, "n") == expected


@given(st.text(max_size=20), st.integers(0, MAX_INT))
def test_a_task_count_record_is_read_as_it_was_written(connector: str, count: int) -> None:
    key = parse_key(decode_key_text(task_count_key(connector)))
    assert (key.kind, key.name) == (RecordKind.TASK_COUNT, connector)
    value = decode_value(task_count_value(count))
    assert isinstance(value, dict)
    assert int_field(value, "task-count") == count
