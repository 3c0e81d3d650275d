"""`eosctl metrics` against endpoints that say what exporters, agents and strangers say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import Invoke
from tests.fakes.http_server import Endpoint, metrics_endpoint
from tests.fakes.transactions import Scene

# as jmx_exporter 1.0.1 printed it, shortened
PAGE = """\
# HELP kafka_connect_source_task_metrics_transaction_size_max The number of records in the largest transaction
# TYPE kafka_connect_source_task_metrics_transaction_size_max untyped
kafka_connect_source_task_metrics_transaction_size_max{connector="orders",task="1"} 2000.0
kafka_connect_source_task_metrics_transaction_size_max{connector="\\"we ird:\\\\\\"x\\\\\\"\\"",task="0"} NaN
kafka_connect_source_task_metrics_transaction_size_avg{connector="orders",task="1",} 1500.5
kafka_connect_source_task_metrics_transaction_size_min{connector="orders",task="1"} 1.0 1700000000000
kafka_connect_source_task_metrics_source_record_poll_rate{connector="orders",task="1"} 567.1
kafka_connect_source_task_metrics_source_record_write_rate{connector="orders",task="1"} 500.0
kafka_connect_source_task_metrics_poll_batch_max_time_ms{connector="orders",task="1"} 3.0
this_line_is_broken_but_none_of_ours{
"""
MBEANS = {
    "kafka.connect:connector=orders,task=1,type=source-task-metrics": {
        "transaction-size-max": 2000.0, "transaction-size-avg": 1500.5, "transaction-size-min": 1.0,
        "source-record-poll-rate": 567.1, "source-record-write-rate": 500.0, "poll-batch-avg-time-ms": None,
    },
    'kafka.connect:connector="we ird:\\"x\\"",task=0,type=source-task-metrics': {"transaction-size-max": "NaN"},
}  # fmt: skip


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with metrics_endpoint(PAGE) as said:
        yield said


def jolokia(**answer: Any) -> str:
    return json.dumps({"request": {}, "timestamp": 1, "status": 200, **answer})


@pytest.mark.parametrize("how", ["prometheus", "jolokia"])
def test_both_ways_tell_the_same(invoke: Invoke, endpoint: Endpoint, how: str) -> None:
    endpoint.body = PAGE if how == "prometheus" else jolokia(value=MBEANS)
    outcome = invoke("metrics", f"--{how}", endpoint.url, "-o", "json")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    first, second = outcome.json()["data"]["rows"]
    assert first == {
        "connector": "orders", "task": 1, "url": endpoint.url, "transaction_size_min": 1.0,
        "transaction_size_max": 2000.0, "transaction_size_avg": 1500.5, "source_record_poll_rate": 567.1,
        "source_record_write_rate": 500.0, "longest_ms": 4000, "transaction_timeout_ms": None, "open_ms": None,
        "findings": [],
    }  # fmt: skip
    assert (second["connector"], second["task"], second["transaction_size_max"]) == ('we ird:"x"', 0, None)
    ((method, path, sent, _authorization),) = endpoint.asked
    if how == "prometheus":
        assert (method, path, sent) == ("GET", "/metrics", "")
    else:
        request = {"type": "read", "mbean": "kafka.connect:type=source-task-metrics,*"}
        assert (method, path, json.loads(sent)) == ("POST", "/metrics/", request)


def test_text(invoke: Invoke, endpoint: Endpoint) -> None:
    outcome = invoke("metrics", "--prometheus", endpoint.url, "--wide", "2000", "--connector", "orders")
    header, row, finding, fix, summary = outcome.stdout.splitlines()
    assert header.split() == [
        "CONNECTOR", "TASK", "MIN", "AVG", "MAX", "POLLED/S", "WRITTEN/S", "TIMEOUT-MS", "OPEN-MS", "URL",
    ]  # fmt: skip
    assert row.split() == ["orders", "1", "1", "1500.5", "2000", "567.1", "500", "-", "-", endpoint.url]
    assert finding.startswith("warning  boundary_too_wide  orders/1 puts up to 2,000 records into one transaction")
    assert fix.startswith("  fix: Commit more often")
    assert summary == "tasks: 1, warning: 1"


def test_the_coordinators_add_timeouts_and_what_is_open(invoke: Invoke, endpoint: Endpoint, stage: Scene) -> None:
    """The scene's task orders/1 has had a transaction open for 90 s, with a timeout of 60."""
    outcome = invoke("metrics", "--prometheus", endpoint.url, *stage.flags, "-o", "json", **stage.surroundings)
    first, second = outcome.json()["data"]["rows"]
    assert (first["transaction_timeout_ms"], first["open_ms"]) == (60_000, 90_000)
    assert [finding["code"] for finding in first["findings"]] == ["transaction_near_timeout"]
    assert second["transaction_timeout_ms"] is None  # no coordinator knows that id
    assert (outcome.exit_code, outcome.json()["status"]) == (3, "findings")


def test_what_has_ended_is_not_open(invoke: Invoke, endpoint: Endpoint, stage: Scene) -> None:
    """Brokers tell when the last transaction began, also after its end: an idle task was near its timeout for ever."""
    stage.brokers.state.transactions["g-orders-1"].state = "CompleteCommit"
    outcome = invoke("metrics", "--prometheus", endpoint.url, *stage.flags, "-o", "json", **stage.surroundings)
    row = outcome.json()["data"]["rows"][0]
    assert (row["transaction_timeout_ms"], row["open_ms"], row["findings"], outcome.exit_code) == (60_000, None, [], 0)


def test_a_cluster_that_does_not_answer_takes_nothing_away(invoke: Invoke, endpoint: Endpoint) -> None:
    flags = ["-b", "127.0.0.1:1", "-g", "g", "--timeout", "300s"]
    outcome = invoke("metrics", "--prometheus", endpoint.url, *flags, "-o", "json")
    assert (outcome.exit_code, len(outcome.json()["data"]["rows"])) == (0, 2)
    assert [problem["code"] for problem in outcome.json()["errors"]] == ["timeouts_unknown"]


@pytest.mark.parametrize(("strict", "exit_code"), [([], 0), (["--strict"], 3)])
def test_a_warning_is_a_finding_only_when_asked(
    invoke: Invoke, endpoint: Endpoint, strict: list[str], exit_code: int
) -> None:
    assert invoke("metrics", "--prometheus", endpoint.url, "--wide", "2000", *strict).exit_code == exit_code


def test_one_endpoint_that_is_down_hides_no_other(invoke: Invoke, endpoint: Endpoint) -> None:
    outcome = invoke("metrics", "--prometheus", "http://127.0.0.1:1/metrics", "--prometheus", endpoint.url)
    assert outcome.exit_code == 7
    assert "orders" in outcome.stdout
    assert "http://127.0.0.1:1/metrics can't be reached: Connection refused" in outcome.stderr


@pytest.mark.parametrize(
    ("how", "status", "body", "exit_code", "said"),
    [
        ("prometheus", 401, "", 5, "not allowed"),
        ("prometheus", 404, "", 1, "answered 404"),
        ("prometheus", 302, "", 1, "answered 302"),
        ("prometheus", 200, "<html>", 1, "does not answer with Prometheus text"),
        ("prometheus", 200, "x_transaction_size_max{connector=\"c\n", 1, "does not answer with Prometheus text"),
        ("prometheus", 200, "x_transaction_size_max{connector=\"c\",task=\"0\"} many", 1, "Prometheus text"),
        ("prometheus", 200, "", 0, "no endpoint has metrics of a source task"),
        ("prometheus", 200, "# nothing\n", 0, "no endpoint has metrics of a source task"),
        ("jolokia", 200, "<html>", 1, "does not answer with Jolokia's JSON"),
        ("jolokia", 200, "[" * 100_000, 1, "does not answer with Jolokia's JSON"),
        ("jolokia", 200, "{}", 1, "it has no status"),
        ("jolokia", 200, jolokia(status=403, error="denied"), 5, r"403 (denied)"),
        ("jolokia", 200, jolokia(status=500, error="x"), 1, "500 (x)"),
        ("jolokia", 200, jolokia(value=7), 1, "200 (no value)"),
        (
            "jolokia", 200, jolokia(status=404, error_type="javax.management.InstanceNotFoundException"),
            0, "no endpoint has metrics",
        ),
        ("jolokia", 200, jolokia(value={}), 0, "no endpoint has metrics"),
    ],
)  # fmt: skip
def test_what_endpoints_say_instead(
    invoke: Invoke, endpoint: Endpoint, how: str, status: int, body: str, exit_code: int, said: str
) -> None:
    endpoint.status, endpoint.body = status, body
    endpoint.headers = {"Location": "http://127.0.0.1:1/elsewhere"} if status == 302 else {}
    outcome = invoke("metrics", f"--{how}", endpoint.url)
    assert (outcome.exit_code, said in outcome.stderr) == (exit_code, True), outcome.stderr


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        ((), 2),
        (("--prometheus", "ftp://w1/metrics"), 2),
        (("--prometheus", "http://user:canary@127.0.0.1:1/metrics"), 2),
        (("--prometheus", "http://127.0.0.1:1/metrics"), 4),
        (("--prometheus", "127.0.0.1:1/metrics", "--wide", "0"), 2),
    ],
)
def test_exit_codes(invoke: Invoke, arguments: tuple[str, ...], exit_code: int) -> None:
    outcome = invoke("metrics", *arguments)
    assert outcome.exit_code == exit_code
    assert outcome.stderr
    assert "canary" not in outcome.stderr


def test_a_connector_that_nobody_has_is_named(invoke: Invoke, endpoint: Endpoint) -> None:
    outcome = invoke("metrics", "--prometheus", endpoint.url, "--connector", "nosuch")
    assert (outcome.exit_code, "no endpoint has metrics of nosuch" in outcome.stderr) == (1, True)


def test_a_workers_credentials_stay_away(invoke: Invoke, endpoint: Endpoint) -> None:
    """An exporter on the worker's host is another program."""
    environ = {"EOSCTL_CONNECT_URL": endpoint.url.replace("http://", "http://user:canary@")}
    assert invoke("metrics", "--prometheus", endpoint.url, environ=environ).exit_code == 0
    assert [authorization for *_rest, authorization in endpoint.asked] == [""]
