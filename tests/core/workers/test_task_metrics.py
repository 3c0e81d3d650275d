"""Metrics of source tasks: names and values as exporters give them, and what the numbers say."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eosctl.core.findings import ERROR, WARNING
from eosctl.core.workers.metrics import (
    ATTRIBUTES,
    SIZES,
    TaskMetrics,
    TimeLimits,
    attribute_of,
    longest_ms,
    metrics_of_mbeans,
    metrics_of_samples,
    task_findings,
)

SIZE, RATE = "transaction-size-max", "source-record-write-rate"
PLACE = {"connector": "c", "task": "0"}


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("kafka_connect_source_task_metrics_transaction_size_avg", "transaction-size-avg"),  # jmx_exporter's own
        ("Kafka_Connect_Source_Task_Metrics_Transaction_Size_Max", "transaction-size-max"),
        ("acme_transaction_size_min", "transaction-size-min"),
        ("transaction_size_min", "transaction-size-min"),
        ("kafka_connect_source_task_source_record_write_rate", "source-record-write-rate"),
        ("kafka_connect_source_task_metrics_transaction_size_avg_total", None),
        ("maxtransaction_size_max", None),
        ("kafka_connect_source_task_metrics_source_record_active_count", None),
        ("", None),
    ],
)
def test_names_of_samples(name: str, attribute: str | None) -> None:
    assert attribute_of(name) == attribute


@pytest.mark.parametrize(
    ("labels", "place"),
    [
        ({"connector": "c", "task": "12"}, ("c", 12)),
        ({"Connector": "c", "TASK": "1", "host": "w"}, ("c", 1)),
        (
            {"connector": r'"we ird:\"x\",a=b\\"', "task": "0"},
            ('we ird:"x",a=b\\', 0),
        ),  # jmx_exporter 1.0.1 keeps quotes
        ({"connector": '"', "task": "0"}, ('"', 0)),
        ({"connector": "c"}, None),
        ({"connector": "", "task": "0"}, None),
        ({"connector": "c", "task": "x"}, None),
        ({"connector": "c", "task": "9" * 5000}, None),
    ],
)
def test_labels_of_samples(labels: dict[str, str], place: tuple[str, int] | None) -> None:
    found = metrics_of_samples([("x_transaction_size_max", labels, 5.0)])
    assert [(each.connector, each.task) for each in found] == ([] if place is None else [place])


def test_samples_of_one_task_come_together_and_nan_is_none() -> None:
    found = metrics_of_samples(
        [
            ("a_transaction_size_max", {"connector": "d", "task": "0"}, 5.0),
            ("a_transaction_size_max", PLACE, math.nan),
            ("a_source_record_write_rate", PLACE, 2.5),
            ("a_batch_size_max", PLACE, 7.0),
        ]
    )
    assert found == [TaskMetrics("c", 0, {SIZE: None, RATE: 2.5}), TaskMetrics("d", 0, {SIZE: 5.0})]


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("kafka.connect:connector=c,task=3,type=source-task-metrics", ("c", 3)),
        ("kafka.connect:type=source-task-metrics,task=3,connector=c", ("c", 3)),
        (r'kafka.connect:connector="a,task=9:\"\n\*",task=3,type=source-task-metrics', ('a,task=9:"\n*', 3)),
        ("kafka.connect:type=connect-worker-metrics", None),
        ("nonsense", None),
    ],
)
def test_names_of_mbeans(name: str, place: tuple[str, int] | None) -> None:
    found = metrics_of_mbeans({name: {SIZE: 4, RATE: "NaN", "transaction-size-min": 10**400, "other": 1}})
    assert [(each.connector, each.task) for each in found] == ([] if place is None else [place])
    assert all(each.values == {SIZE: 4.0, RATE: None, "transaction-size-min": None} for each in found)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(ATTRIBUTES) | st.text(), inner),
    max_leaves=10,
)


@settings(max_examples=30)
@given(st.dictionaries(st.text() | st.text().map(lambda name: f"kafka.connect:connector={name},task=0"), JSON))
def test_no_answer_of_jolokias_breaks_it(mbeans: dict[str, object]) -> None:
    for each in metrics_of_mbeans(mbeans):
        assert each.values.keys() <= set(ATTRIBUTES)
        assert all(value is None or math.isfinite(value) for value in each.values.values())
        assert task_findings(each, TimeLimits(), wide_records=1) is not None


def metrics(size: float | None = 100.0, rate: float | None = 1000.0) -> TaskMetrics:
    return TaskMetrics("c", 0, {**dict.fromkeys(SIZES, size), RATE: rate})


@pytest.mark.parametrize(
    ("size", "rate", "expected"),
    [(2000.0, 500.0, 4000), (None, 500.0, None), (10.0, 0.0, None), (10.0, None, None), (1e300, 1e-300, None)],
)
def test_how_long_the_largest_transaction_was_open_at_most(
    size: float | None, rate: float | None, expected: int | None
) -> None:
    assert longest_ms(metrics(size, rate)) == expected


@pytest.mark.parametrize(
    ("task", "limits", "expected"),
    [
        (metrics(), TimeLimits(), []),
        (metrics(None, 0.0), TimeLimits(60_000), []),  # nothing was committed lately
        (TaskMetrics("c", 0, {RATE: 5.0}), TimeLimits(), [("no_transaction_sizes", WARNING)]),
        (metrics(), TimeLimits(60_000, 47_999), []),
        (metrics(), TimeLimits(60_000, 48_000), [("transaction_near_timeout", ERROR)]),
        (metrics(), TimeLimits(None, 48_000), []),
        (metrics(50_000.0), TimeLimits(100_000), [("boundary_too_wide", WARNING)]),
        (metrics(49_999.0, 1e6), TimeLimits(), []),
        (metrics(48_000.0, 1000.0), TimeLimits(), [("transaction_may_near_timeout", WARNING)]),
        (metrics(48_000.0, 1000.0), TimeLimits(60_000), [("transaction_may_near_timeout", WARNING)]),
        (metrics(48_000.0, 1000.0), TimeLimits(120_000), []),
        (metrics(9_999.0, 10.0), TimeLimits(), []),  # a quiet task, not a wide boundary
        (
            metrics(60_000.0, 1000.0),
            TimeLimits(60_000, 59_000),
            [("transaction_near_timeout", ERROR), ("boundary_too_wide", WARNING)],
        ),
    ],
)
def test_what_the_numbers_say(task: TaskMetrics, limits: TimeLimits, expected: list[tuple[str, str]]) -> None:
    found = task_findings(task, limits, wide_records=50_000)
    assert [(each.code, each.severity) for each in found] == expected


def test_an_assumed_timeout_is_called_so() -> None:
    (assumed,) = task_findings(metrics(48_000.0, 1000.0), TimeLimits(), wide_records=50_000)
    (known,) = task_findings(metrics(48_000.0, 1000.0), TimeLimits(60_000), wide_records=50_000)
    assert (assumed.evidence["assumed"], "Kafka's default" in assumed.message) == (True, True)
    assert (known.evidence["assumed"], "Kafka's default" in known.message) == (False, False)
