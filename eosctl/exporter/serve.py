"""The operation behind `eosctl exporter`: collects and serves until SIGTERM, or once, into a file."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.checks.ignored import IgnoredFinding
from eosctl.collect.collector import Collector
from eosctl.collect.overview import Collected, Overview
from eosctl.collect.sources import KAFKA, sources
from eosctl.errors import EosctlError, ExitCode, InterruptedByUserError, UsageError
from eosctl.events import Event, ignore_events
from eosctl.exporter.exposition import DEFAULT_TOP, expose
from eosctl.exporter.rows import EXPORTER, EXPORTER_METRICS, CollectionRow, ExporterSummary, MetricsText
from eosctl.exporter.server import open_server
from eosctl.exporter.web.access import WebAccess
from eosctl.machine.files import write_whole
from eosctl.machine.memory import share_one_heap
from eosctl.report import Problem, Report

DEFAULT_LISTEN = "127.0.0.1:9618"
DEFAULT_INTERVAL_S = 30.0
_SHUTDOWN_POLL_S = 0.2


class ExporterRequest(Struct, frozen=True):
    """The exporter's options. `once`: look once, print the metrics or write them to `textfile`, and end.

    `top` is how many series a metric may have, without `other`. `web_config_file` names the file for authentication and
    TLS.
    """

    listen: str = DEFAULT_LISTEN
    interval: float = DEFAULT_INTERVAL_S
    once: bool = False
    textfile: str | None = None
    top: int = DEFAULT_TOP
    web_config_file: str | None = None


def run_exporter(app: App, request: ExporterRequest, *, ignore: Sequence[IgnoredFinding] = ()) -> Report:
    """Serve until SIGTERM, then exit 0; with `once` write the file, and exit 4 or the like where nothing was seen.

    Raises UsageError, InputFileError of the web-config file, EosctlError where the address is taken,
    InterruptedByUserError after Ctrl-C.
    """
    app.target.require_client()
    app.target.require_group_id()
    if request.textfile is not None and not request.once:
        raise UsageError("--textfile needs --once", hint="Say --once --textfile FILE.")
    quiet = replace(app, on_event=ignore_events) if request.once else app  # the report says it, once
    collector = Collector(quiet, sources(ignore=ignore), interval_s=request.interval)
    if request.once:
        return _once(app, collector, request)
    return _serve(app, collector, request)


def _serve(app: App, collector: Collector, request: ExporterRequest) -> Report:
    share_one_heap()
    ended = threading.Event()
    path = request.web_config_file
    access = None if path is None else WebAccess(Path(path), app.clock, app.on_event)
    with open_server(request.listen, collector.overview, top=request.top, access=access) as server, _ends(ended):
        threading.Thread(target=server.serve_forever, args=(_SHUTDOWN_POLL_S,), daemon=True).start()
        app.on_event(Event(f"listening on {server.url()}/metrics"))
        gc.freeze()  # what is loaded by now stays: the collector looks for cycles every few seconds
        with collector:
            try:
                while not ended.wait(1.0):
                    pass
            except KeyboardInterrupt:
                raise InterruptedByUserError("interrupted; the exporter has ended") from None
            finally:
                server.shutdown()
    return _report(collector.overview(), ExitCode.OK)


@contextmanager
def _ends(ended: threading.Event) -> Iterator[None]:
    """Set `ended` on SIGTERM, where this is the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda _number, _frame: ended.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _once(app: App, collector: Collector, request: ExporterRequest) -> Report:
    overview = collector.look_once(app.deadline)
    body, _content_type = expose(lambda: overview, "", top=request.top, once=True)
    if request.textfile is not None:
        write_textfile(Path(request.textfile), body)
    failed = [each for each in overview.collected.values() if each.error is not None or not each.looks]
    kafka = overview.collected[KAFKA]
    code = ExitCode.UNREACHABLE if kafka in failed else ExitCode.PARTIAL if failed else ExitCode.OK
    report = _report(overview, code)
    if request.textfile is not None:
        return report
    return replace(report, kind=EXPORTER_METRICS, data=MetricsText(metrics=body.decode()))


def write_textfile(path: Path, body: bytes) -> None:
    """Write the file that node_exporter, another user, reads; raises EosctlError where it can't be written."""
    try:
        write_whole(path, lambda file: file.write(body), mode=0o644)
    except OSError as exc:
        hint = getattr(exc, "hint", "Check the folder, its rights, and the space on it.")
        raise EosctlError(f"cannot write {path}: {exc.strerror or exc}", hint=hint) from exc


def _report(overview: Overview, exit_code: ExitCode) -> Report:
    rows = [_row(each, overview.taken_ms) for each in overview.collected.values()]
    failed = [row for row in rows if row.error is not None]
    problems = (
        [Problem(EosctlError.code, f"{row.source}: {row.error}: {row.message}").as_warning() for row in failed]
        if exit_code is not ExitCode.OK
        else []
    )
    summary = ExporterSummary(sources=len(rows), failed=len(failed))
    return Report(kind=EXPORTER, rows=rows, summary=summary, data=MetricsText(), problems=problems, exit_code=exit_code)


def _row(each: Collected, now_ms: int) -> CollectionRow:
    error = each.error_at(now_ms) or (None if each.looks else "timed_out")
    return CollectionRow(
        source=each.source,
        age_s=each.age_s(now_ms),
        duration_s=None if each.duration_s is None else round(each.duration_s, 3),
        error=error,
        message=each.message_at(now_ms) if each.looks else each.message or "the look has not ended in time",
    )
