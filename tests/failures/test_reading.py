"""Text as it arrives: from terminals, containers, JSON loggers and REST; of any length, and meant to be slow."""

from __future__ import annotations

import io
import json
import re
import resource
import textwrap
import time
from collections.abc import Callable, Iterable

import pytest

from eosctl.failures.reading import events_in, log_lines
from eosctl.failures.rows import FailureRow
from eosctl.failures.tally import Judged, judged, lines_of, read_all, recognise
from eosctl.report import Report
from tests.failures.manifest import FOLDER

TRACE = (FOLDER / "connect-task-fenced-4.3.1.txt").read_text(encoding="utf-8")
LOGGED = f"[2026-11-23 00:51:36,120] ERROR WorkerSourceTask{{id=orders-0}} Task threw an exception (a.B:1)\n{TRACE}"
CODE = "task_fenced_or_expired"


def found(text: str | Iterable[str]) -> list[Judged]:
    return judged(read_all(text.splitlines() if isinstance(text, str) else text))


def each_line(prefix: str) -> Callable[[str], str]:
    return lambda text: "\n".join(prefix + line for line in text.splitlines())


def in_json(text: str) -> str:
    first, *trace = text.splitlines()
    return json.dumps({"@timestamp": "2026-11-23T00:51:36.120Z", "message": first, "stack_trace": "\n".join(trace)})


def in_docker(text: str) -> str:
    return "\n".join(json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "t"}) for line in text.splitlines())


def folded(text: str) -> str:
    """As a terminal of 80 columns gives it to whoever selects it."""
    return "\n".join(line[start : start + 80] for line in text.splitlines() for start in range(0, len(line), 80))


@pytest.mark.parametrize(
    "dressed",
    [
        str,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: re.sub(r"(?m)^(.*Exception)", "\x1b[31m\\1\x1b[0m", text),
        lambda text: text.replace("\t", ""),
        lambda text: text.replace("\t", "    "),
        each_line("connect-1  | "),
        each_line("[pod/connect-0/worker] "),
        each_line("2026-11-23T00:51:36.120123456Z stderr F "),
        each_line("2026-11-23T00:51:36.120123456Z "),
        each_line("Nov 23 00:51:36 host connect[123]: "),
        in_json, in_docker, folded,
        lambda text: "\n".join(part for line in text.splitlines() for part in textwrap.wrap(line, 80)),
        lambda text: json.dumps({"tasks": [{"id": 0, "state": "FAILED", "trace": text}]}),
        lambda text: json.dumps({"tasks": [{"id": 0, "state": "FAILED", "trace": text}]}, indent=2),
        lambda text: json.dumps(json.dumps({"trace": text})),
        lambda text: f"caf\udce9\n{text}",
    ],
)  # fmt: skip
def test_the_same_trace_in_any_dress(dressed: Callable[[str], str]) -> None:
    data = dressed(LOGGED).encode("utf-8", errors="surrogateescape")
    [each] = judged(read_all(lines_of(io.BytesIO(data))))
    assert (each.found.failure.code, each.role, each.found.count) == (CODE, "cause", 1)


def test_powershell_redirects_utf16() -> None:
    [each] = judged(read_all(lines_of(io.BytesIO(LOGGED.encode("utf-16")))))
    assert each.found.failure.code == CODE


@pytest.mark.parametrize("text", ["a\nb\n", "a\nb", ""])
def test_utf16_has_as_many_lines_as_utf8(text: str) -> None:
    counts = [len(list(lines_of(io.BytesIO(text.encode(how))))) for how in ("utf-8", "utf-16")]
    assert counts[0] == counts[1]


def test_utf16_of_any_length_is_read_part_by_part() -> None:
    """It used to be read as a whole."""
    longest = 0

    class Watched(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            nonlocal longest
            data = super().read(size)
            longest = max(longest, len(data))
            return data

    text = f"{LOGGED.strip()}\nĊ਀𝄞 ok\n" * 2000
    report = recognise(lines_of(Watched(text.encode("utf-16"))), source="x")
    [row] = report.rows
    assert isinstance(row, FailureRow)
    assert (row.code, row.count) == (CODE, 2000)
    assert longest < len(text) / 10


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("[2026-11-23 00:51:36,120] ERROR x", "2026-11-23 00:51:36,120"),
        ("2026-11-23T00:51:36.120+01:00 ERROR x", "2026-11-23T00:51:36.120+01:00"),
        ("Nov 23, 2026 1:02:03 AM org.apache.X y", "Nov 23, 2026 1:02:03 AM"),
        ("23 nov. 2026 01:02:03 SEVERE x", "23 nov. 2026 01:02:03"),
        ("23.11.2026 00:51:36 ERROR x", "23.11.2026 00:51:36"),
        ("11/23/26 00:51:36 ERROR x", "11/23/26 00:51:36"),
        ("10:58:49.285 [main] WARN x", "10:58:49.285"),
        ("password hunter2 10:58:49 x", ""),
    ],
)
def test_a_time_is_told_as_it_stands_there(line: str, at: str) -> None:
    [said] = log_lines(line)
    assert said.time == at


def test_what_is_there_often_is_told_once_with_its_times() -> None:
    def lines() -> Iterable[str]:
        for second in range(0, 10_000, 5):
            yield f"[2026-11-23 {second // 3600:02}:{second // 60 % 60:02}:{second % 60:02},000] ERROR x (a.B:1)"
            yield from TRACE.splitlines()

    [each] = found(lines())
    length = 1 + len(TRACE.splitlines())
    assert (each.found.count, each.found.line, each.found.last_line) == (2_000, 1, 1_999 * length + 1)
    assert (each.found.first_time, each.found.last_time) == ("2026-11-23 00:00:00,000", "2026-11-23 02:46:35,000")


def test_the_deepest_cause_is_first_and_what_noticed_it_is_its_consequence() -> None:
    text = (
        "org.apache.kafka.connect.errors.ConnectException: Failed to flush offsets and/or records for task c-0\n"
        "\tat a.B.c(D.java:1)\n"
        "\tSuppressed: org.apache.kafka.common.errors.NotCoordinatorException: This is not the correct coordinator.\n"
        "\t\tat a.B.c(D.java:1)\n\tCaused by: a.b.Other: x\n"
        "Caused by: org.apache.kafka.common.errors.RecordTooLargeException: The message is 3 bytes"
    )
    told = [(each.found.failure.code, each.role, each.explained_by) for each in found(text)]
    assert told == [
        ("record_too_large", "cause", ()),
        ("offsets_not_written", "consequence", ("record_too_large",)),
        ("not_coordinator", "suppressed", ()),
    ]


def test_what_the_broker_says_explains_what_its_clients_say() -> None:
    broker = (FOLDER / "rolled-back-broker-4.3.1.txt").read_text(encoding="utf-8")
    client = (FOLDER / "timed-out-commit-3.9.2.txt").read_text(encoding="utf-8")
    told = [(each.found.failure.code, each.role, each.explained_by) for each in found(client * 3 + broker)]
    assert told == [
        ("transaction_timed_out", "cause", ()),
        ("producer_fenced", "consequence", ("transaction_timed_out",)),
    ]


def test_what_was_suppressed_first_is_read_too() -> None:
    assert found("Suppressed: a.b.Odd: x\n" * 100) == []


def test_an_unknown_exception_is_told_by_its_classes_alone() -> None:
    lines = ["a.b.Odd: the password is hunter2", "\tat a.b.C.d(E.java:1)", "Caused by: c.d.Odder: hunter2"]
    report = recognise(lines, source="x")
    assert (report.exit_code, report.rows) == (1, [])
    assert "hunter2" not in repr(report)
    [unknown] = report.data.unknown
    assert (unknown.outermost, unknown.deepest, unknown.count, unknown.line) == ("a.b.Odd", "c.d.Odder", 1, 1)


def test_a_level_is_no_time_zone() -> None:
    """After a time without brackets INFO was taken for a time zone, and what is said at INFO for a failure."""
    lines = ["2026-11-28T01:13:24,293 INFO Admin - update failed", "org.apache.kafka.common.errors.OddException: x"]
    [event] = events_in(lines)
    assert (event.has_trace, event.time) == (False, "2026-11-28T01:13:24,293")


SETTINGS = (
    "[2026-11-23 00:51:36,120] {} DistributedConfig values: \n"
    "\taccess.control.allow.methods = \n\tadmin.listeners = null\n"
    "\tconfig.action.reload = restart\n\tkey.converter = class org.apache.kafka.connect.json.JsonConverter\n"
    " (org.apache.kafka.connect.runtime.distributed.DistributedConfig:371)\n"
)


@pytest.mark.parametrize("level", ["INFO", "WARN"])
def test_settings_that_a_log_has_are_no_stack_traces(level: str) -> None:
    """`access.control.allow.methods` was an exception that nobody knows, in every worker's and broker's log."""
    tally = read_all((SETTINGS.format(level) * 3).splitlines())
    assert (tally.traces, tally.unknown) == (0, {})


@pytest.mark.parametrize(
    ("level", "frame", "traces"), [("INFO", "", 0), ("INFO", "\n\tat a.B.c(D.java:1)", 1), ("WARN", "", 1)]
)
def test_what_is_said_at_info_failed_only_with_frames(level: str, frame: str, traces: int) -> None:
    text = f"[2026-11-23 00:51:36,120] {level} Node 1 is gone (a.B:1)\na.b.c.OddException: x{frame}"
    assert read_all(text.splitlines()).traces == traces


@pytest.mark.parametrize(
    "secret",
    [
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.Vd0Canary_x-y",
        "Canary-hunter2", "hvs.CAESICanary", "CanaryCanary was refused",
    ],
)  # fmt: skip
def test_what_stands_in_the_place_of_a_class_is_not_told(secret: str) -> None:
    """The first word after "Caused by:", and whatever has dots, was shown as the class, whoever's secret it was."""
    lines = [
        f"[2026-11-23 00:51:36,120] ERROR login failed: {secret}", "a.b.OddException: x", "\tat a.b.C.d(E.java:1)",
        f"Caused by: {secret}", f"{secret}: {secret}", f"Caused by: {secret}",
    ]  # fmt: skip
    report = recognise(lines, source="x")
    assert "anary" not in repr(report)
    assert {(each.outermost, each.deepest) for each in report.data.unknown} <= {
        ("a.b.OddException", "a.b.OddException"), ("?", "?")
    }  # fmt: skip


class Endless(io.RawIOBase):
    """The same bytes again and again, up to a size."""

    def __init__(self, block: bytes, size: int) -> None:
        self._block, self._left = block, size // len(block)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._rest and self._left:
            self._left, self._rest = self._left - 1, self._block
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


def read(block: bytes, size: int) -> Report:
    return recognise(lines_of(io.BufferedReader(Endless(block, size))), source="x")


def test_a_long_log_takes_no_more_memory_than_a_short_one() -> None:
    """50 MB take four seconds; here are 8."""
    read(LOGGED.encode(), 1 << 20)
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began_s = time.process_time()
    report = read(LOGGED.encode(), 8_000_000)
    [row] = report.rows
    assert isinstance(row, FailureRow)
    assert (row.code, row.count) == (CODE, 8_000_000 // len(LOGGED.encode()))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 16 << 10
    assert time.process_time() - began_s < 20


SLOW = {
    "one line": b"a", "dots": b"a.", "spaces": b" ", "prefix": b"a" * 80 + b" " * 40, "colours": b"\x1b[",
    "json": b'{"a":',
    "escaped": b'\\n"": "', "brackets": b"[", "times": b"12:00:00 ", "dates": b"Nov 23, ", "class": b"a/b.c$",
    "ids": b"task a-1 ",
    "frames": b"at a.b(", "transactional": b"transactionalId=a",
}  # fmt: skip


@pytest.mark.parametrize("block", SLOW.values(), ids=SLOW.keys())
def test_no_line_takes_longer_than_its_length(block: bytes) -> None:
    """A pattern that goes back takes the square: four times the length, sixteen times the time."""

    def took_s(size: int) -> float:
        line = (b"org.apache.X: InvalidPidMappingException " + block * (size // len(block)) + b"\n").decode()
        began_s = time.process_time()
        read_all([line])
        return time.process_time() - began_s

    took_s(1000)
    short_s, long_s = min(took_s(10_000) for _ in range(3)), min(took_s(80_000) for _ in range(3))
    assert long_s < 24 * max(short_s, 0.002)
