"""Errors inside Spark in one line: stack traces of two languages never reach the user."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from eosctl import errors
from eosctl.errors import EosctlError, UnauthorizedError, UnreachableError

_EXCEPTION_LINE = re.compile(r"^(?:Caused by: )?([\w.]*(?:Error|Exception)\b.*)$", re.MULTILINE)
_TELLING = re.compile(r"\bError\b|Exception\b|Unrecognized|Invalid|Could not|not found|cannot|unable to", re.IGNORECASE)
_OF_NO_USE = re.compile(
    r"\s+at |WARNING: |\S+ \S+ WARN |NOTE: |Picked up |Error occurred during init"
    r"|Error: A fatal exception|Error: Could not create"
)
"""Lines of a log that report no reason: stack frames, warnings, and the launcher's last words, always the same."""

_LOG_LIMIT = 200_000
_OUR_ERROR = re.compile(r"eosctl\.errors\.(\w+): (.*)")
_KAFKA_ERROR = re.compile(r'KafkaError\{code=(\w+),val=-?\d+,str="(.*?)"\}')
_UNREACHABLE = ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_TIMED_OUT", "_TIMED_OUT_QUEUE", "_MSG_TIMED_OUT")
_NEXT: dict[type[EosctlError], str] = {
    UnauthorizedError: "`eosctl acls generate --role offset-writer` prints what is needed. ",
    UnreachableError: "Can the executors reach the brokers, at the addresses that they advertise? ",
}
_TASK = re.compile(r"Task (\d+) in stage \S+ failed (\d+) times")
_WRAPPERS = ("org.apache.spark", "java.", "py4j.", "pyspark.")
_DEATHS = {
    "Python worker exited unexpectedly": "the Python process of a task died, killed or for want of memory",
    "ExecutorLostFailure": "an executor was lost, killed or for want of memory",
}
"""Spark's words for a process that died instead of failing: its exceptions explain nothing."""


def start_error(error: BaseException, *, log_file: Path, log_start: int) -> EosctlError:
    """Return the error for a Spark that did not start, with the JVM's own words from the log after `log_start`.

    pyspark only says that the JVM exited before it reported its port.
    """
    output = ""
    if "JAVA_GATEWAY_EXITED" in str(error):
        with suppress(OSError), log_file.open("rb") as log:
            log.seek(log_start)
            output = log.read(_LOG_LIMIT).decode("utf-8", "replace")
    lines = [line.strip() for line in output.splitlines() if line.strip() and not _OF_NO_USE.match(line)]
    telling = [line for line in lines if _TELLING.search(line)] or lines
    if not telling:
        return spark_error(error, "starting Spark", log_file=log_file)
    return EosctlError(f"starting Spark failed: {telling[0][:500]}", hint=f"The whole story is in {log_file}.")


def spark_error(error: BaseException, doing: str, *, log_file: Path | None = None) -> EosctlError:
    """Return the error for a failure inside Spark: the innermost line that is not about Spark itself, and the task."""
    text = str(error)
    where = str(log_file) if log_file else "spark.log beside the snapshot folder"
    kind, message, hint = _meaning(_cause(error, text))
    return kind(f"{doing} failed in Spark: {message}{_task(text)}", hint=f"{hint}The whole story is in {where}.")


def _meaning(cause: str) -> tuple[type[EosctlError], str, str]:
    """Return the class that a task's error has without Spark, and so the exit code, its message, and the next step."""
    if ours := _OUR_ERROR.fullmatch(cause):
        kind = getattr(errors, ours[1], EosctlError)
        return kind, ours[2], _NEXT.get(kind, "")
    kafkas = _KAFKA_ERROR.search(cause)
    message = f"{kafkas[2]} ({kafkas[1]})" if kafkas else cause
    if re.search(r"\b\w*(?:AUTHORIZATION|AUTHENTICATION)(?:_FAILED)?\b", cause):
        return UnauthorizedError, message, _NEXT[UnauthorizedError]
    if any(re.search(rf"\b{name}\b", cause) for name in _UNREACHABLE):
        return UnreachableError, message, _NEXT[UnreachableError]
    return EosctlError, message, ""


def _cause(error: BaseException, text: str) -> str:
    lines: list[str] = _EXCEPTION_LINE.findall(text)
    ours = [line for line in lines if not line.startswith(_WRAPPERS)]
    deaths = [meaning for words, meaning in _DEATHS.items() if words in text]
    return [*(lines or [text.strip().partition("\n")[0] or type(error).__name__]), *deaths, *ours][-1]


def _task(text: str) -> str:
    """Return which task it was, and how often it was tried, if Spark gave up because of one."""
    found = _TASK.search(text)
    if found is None:
        return ""
    number, times = found.groups()
    return f" (task {number})" if times == "1" else f" (task {number}, tried {times} times)"
