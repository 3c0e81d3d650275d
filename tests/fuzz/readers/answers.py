"""Answers over HTTP: a worker's REST interface, metrics; and the logs and traces that `explain` is given."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, ClassVar

import urllib3

from eosctl.connect.metrics import MetricsClient
from eosctl.connect.rest import RestConnectWorker
from eosctl.core.workers.access import ConnectAccess
from eosctl.core.workers.connector_entry import plugin_type
from eosctl.core.workers.metrics import TaskMetrics, TimeLimits, longest_ms, task_findings
from eosctl.deadline import Clock, Deadline
from eosctl.errors import EosctlError
from eosctl.failures.tally import lines_of, recognise
from eosctl.group.modes import probe_worker
from eosctl.output import render_report
from eosctl.report import Report
from tests.failures.manifest import FOLDER as TRACES
from tests.fuzz.reader import Reader

_URL = "http://127.0.0.1:8083"
_NO_TIME = Clock(sleep_s=lambda _seconds: None)


class _Pool:
    """What a worker's pool of connections is asked: each request has the same answer."""

    def __init__(self, data: bytes) -> None:
        self._data, self.asked = data, 0

    def request(self, _method: str, url: str, **_options: Any) -> urllib3.HTTPResponse:
        self.asked += 1
        url.encode("ascii")  # as http.client does
        headers = {"Content-Type": "application/json", "Date": self._data[:40].decode("latin-1")}
        return urllib3.HTTPResponse(
            io.BytesIO(self._data), status=200, headers=headers, preload_content=False, request_method="GET"
        )


class _Worker(RestConnectWorker):
    def __init__(self, data: bytes) -> None:
        super().__init__(_URL, deadline=Deadline.after(60, _NO_TIME))
        self.pool = _Pool(data)
        self._sender._open = partial(nullcontext, self.pool)  # type: ignore[assignment]


def _read_rest(data: bytes) -> object:
    """Every request; what names it tells go into further ones, as they do in eosctl."""
    worker = _Worker(data)
    asked: list[Callable[[], object]] = [
        *(worker.root, worker.date_ms, worker.health, worker.connectors, worker.plugins),
        *(lambda: worker.offsets("src"), lambda: worker.topics("src"), lambda: worker.connector_status("src")),
        *(lambda: worker.connector_config("src"), lambda: probe_worker(worker)),
        lambda: [_asked_on(worker, name, entry.config) for name, entry in worker.connectors().items()],
        lambda: worker.alter_offsets("src", worker.offsets("src")),
        lambda: worker.put_connector_config("src", worker.connector_config("src")),
        lambda: worker.create_connector("src", worker.connector_config("src"), "STOPPED"),
    ]
    found = [_taken(ask) for ask in asked]
    assert worker.pool.asked > len(asked) / 2, "they asked another pool"
    return found


def _asked_on(worker: _Worker, name: str, config: Mapping[str, str]) -> object:
    plugin = config.get("connector.class", "")
    asked = (lambda: worker.connector_status(name), lambda: worker.validate(plugin, config))
    return plugin_type(config), [_taken(ask) for ask in asked]


def _taken(read: Callable[[], object]) -> object:
    try:
        return read()
    except EosctlError:
        return None


_ENTRY = {
    "info": {"name": "src", "config": {"connector.class": "a.FileStreamSource", "topics": "t", "n": None},
             "tasks": [{"connector": "src", "task": 0}, {"connector": "src", "task": 1}], "type": "source"},
    "status": {"name": "src", "connector": {"state": "RUNNING", "worker_id": "W:8083"}, "type": "source",
               "tasks": [{"id": 0, "state": "FAILED", "worker_id": "w:8083", "trace": "a\n\tat b"}]},
}  # fmt: skip
_DOCUMENTS: tuple[object, ...] = (
    {"version": "4.3.1", "commit": "c", "kafka_cluster_id": "k"},
    {"status": "healthy", "message": "m"},
    {"src": _ENTRY, "other": _ENTRY},
    _ENTRY["status"],
    {"src": {"topics": ["a", "b"]}},
    {"offsets": [{"partition": {"f": "a"}, "offset": {"n": 1}}, {"partition": {}, "offset": None}]},
    {"connector.class": "FileStreamSource", "tasks.max": "1"},
    [{"class": "a.FileStreamSource", "type": "source", "version": "4.3.1"}, {"class": "b.Sink", "type": "sink"}],
    {"name": "a", "error_count": 1, "groups": [], "configs": [{"definition": {"name": "offsets.storage.topic"},
     "value": {"name": "exactly.once.support", "value": "required", "errors": ["e"], "visible": True}}]},
    {"error_code": 404, "message": "HTTP 404 Not Found"},
)  # fmt: skip


class _Metrics(MetricsClient, frozen=True):
    """A client whose endpoint has answered."""

    answer: ClassVar[bytes] = b""

    def _exchange(self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None = None) -> bytes:
        return type(self).answer


def _metrics_reader(read: Callable[[_Metrics], list[TaskMetrics]]) -> Callable[[bytes], object]:
    def read_all(data: bytes) -> object:
        _Metrics.answer = data
        tasks = read(_Metrics(Deadline.after(60, _NO_TIME), ConnectAccess()))
        limits = TimeLimits(timeout_ms=1_000, open_ms=999)
        return [(longest_ms(each), task_findings(each, limits, wide_records=5)) for each in tasks]

    return read_all


_PROMETHEUS = b"""# HELP kafka_connect_source_task_metrics_transaction_size_max x
# TYPE kafka_connect_source_task_metrics_transaction_size_max gauge
kafka_connect_source_task_metrics_transaction_size_max{connector="src",task="0",} 5.0
kafka_connect_source_task_metrics_transaction_size_min{connector="a\\"b\\\\c",task="1"} NaN 1700000000000
x_transaction_size_avg{Connector="src",Task="0"} 1.5e3
x_source_record_write_rate{connector="src",task="0"} 0.1 # {trace_id="x"} 1
"""
_MBEAN = "kafka.connect:type=source-task-metrics,"
_JOLOKIA = {
    "status": 200,
    "value": {
        f"{_MBEAN}connector=src,task=0": {"transaction-size-max": 5.0, "source-record-write-rate": 0.1},
        f'{_MBEAN}connector="a\\,b",task=1': {"transaction-size-min": "NaN", "transaction-size-avg": 1},
    },
}  # fmt: skip


_JOLOKIA_ANSWER = json.dumps(_JOLOKIA).encode()


def _read_log(data: bytes) -> object:
    report: Report = recognise(lines_of(io.BytesIO(data)), source="f")
    out = io.StringIO()
    for output in ("wide", "json"):
        render_report(report, output=output, stream=out, color=False)
    return out.getvalue()


def _logs() -> list[bytes]:
    found = [path.read_bytes()[:4_000] for path in sorted(TRACES.glob("*.txt"))]
    one = found[0].decode("utf-8", "replace")
    lines = [json.dumps({"@timestamp": "2026", "level": "ERROR", "message": each}) for each in one.splitlines()]
    return [*found, "\n".join(lines).encode(), one[:500].encode("utf-16"), json.dumps(one).encode()]


ANSWERS = [
    Reader("rest", _read_rest, lambda: [json.dumps(each).encode() for each in _DOCUMENTS]),
    Reader("prometheus", _metrics_reader(lambda client: client.read_prometheus(_URL)), lambda: [_PROMETHEUS]),
    Reader("jolokia", _metrics_reader(lambda client: client.read_jolokia(_URL)), lambda: [_JOLOKIA_ANSWER]),
    Reader("explain", _read_log, _logs, most_s=2),
]
