"""The rows of `sandbox`, and those of `demo`'s walk through one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from msgspec import UNSET, UnsetType, structs

from eosctl.core.wording import counted
from eosctl.foreign import printable, shell_word, shell_words
from eosctl.output.cells import TOTAL, Brief, format_cell, summary_lines
from eosctl.output.rows import Kind, Printed, Text
from eosctl.report import Report


class NodeRow(Printed):
    """A process of a sandbox."""

    node: Annotated[str, "The name of the process."]
    address: Annotated[str, "Where it is reached."]
    running: Annotated[bool, "Whether the process runs."]
    pid: Annotated[int, "The id of the process."]
    group_id: Annotated[str | None, "The group of a Connect worker."]
    mode: Annotated[str | None, "The exactly-once mode that a Connect worker was started in."]
    config: Annotated[str, "The file with its settings."]
    log: Annotated[str, "The file with its log."]
    metrics_url: Annotated[str | None, "Where a worker's metrics are read; null where it exports none."]


class LogLine(Printed):
    """A line of a log."""

    node: Annotated[str, "The process that wrote the line."]
    line: Annotated[str, "The line."]


class DemoRow(Printed):
    """A fact that the demo proved."""

    step: Annotated[object, "The step of the demo."]
    proved: Annotated[str, "What was looked at."]
    expected: Annotated[object, "What it must be."]
    actual: Annotated[object, "What it was."]
    ok: Annotated[bool, "Whether it was what it must be."]


class UpSummary(Printed):
    """The name of the sandbox, and whether it runs."""

    name: Annotated[str, "The name of the sandbox."]
    up: Annotated[bool, "Whether one of its processes runs."]
    kafka_version: Annotated[str, "The version of Kafka."]
    connectors_version: (
        Annotated[str, "The version of Kafka's own connectors, where it is another one."] | UnsetType
    ) = UNSET


class StatusSummary(Printed):
    """The name of the sandbox, and whether it exists."""

    name: Annotated[str, "The name of the sandbox."]
    up: Annotated[bool, "Whether one of its processes runs."]
    kafka_version: Annotated[str, "The version of Kafka, where there is a sandbox."] | UnsetType = UNSET
    connectors_version: (
        Annotated[str, "The version of Kafka's own connectors, where it is another one."] | UnsetType
    ) = UNSET


class DownSummary(Printed):
    """The name of the sandbox that was stopped."""

    name: Annotated[str, "The name of the sandbox."]
    stopped: Annotated[list[str], "The processes that ran until then."]


class DemoSummary(Printed):
    """The number of facts that were as expected."""

    proved: Annotated[int, "How many facts were as expected.", TOTAL]
    wrong: Annotated[int, "How many were not."]


class PrincipalPart(Printed):
    """A user of a secured sandbox."""

    principal: Annotated[str, "The principal, as ACLs name it."]
    command_config: Annotated[str, "The client settings with which one is this user."]


Environ = Annotated[dict[str, str], "The environment variables that point eosctl at the sandbox."]
Directory = Annotated[str, "The directory of the sandbox."]
Topics = Annotated[object, "The internal topics of each group."]
Principals = Annotated[list[PrincipalPart], "The users of a secured sandbox."]


class Sandbox(Printed):
    """The settings with which a sandbox is reached."""

    environ: Environ
    directory: Directory
    topics: Topics
    principals: Principals


class FoundSandbox(Printed):
    """The settings with which a sandbox is reached, if there is one."""

    environ: Environ | UnsetType = UNSET
    directory: Directory | UnsetType = UNSET
    topics: Topics | UnsetType = UNSET
    principals: Principals | UnsetType = UNSET


class LogFiles(Printed):
    """The log files."""

    files: Annotated[dict[str, str], "The log file of each process."]


def _sandbox_lines(report: Report) -> Iterable[str]:
    """Render how to reach the sandbox: lines to paste into a shell."""
    sandbox = report.data
    if sandbox.environ is not UNSET:
        yield from (f"export {shell_word(name)}={shell_word(value)}" for name, value in sandbox.environ.items())
        yield from (f"{user.principal}: --command-config {user.command_config}" for user in sandbox.principals)
    urls = [row.metrics_url for row in report.rows_of(NodeRow) if row.metrics_url]
    if urls:
        yield "metrics: eosctl metrics " + " ".join(f"--prometheus {shell_word(url)}" for url in urls)
    yield from summary_lines(report)


def _status_lines(report: Report) -> Iterable[str]:
    """Render how to reach the sandbox, or say that it is not up."""
    summary = report.summary_of(StatusSummary)
    if report.rows:
        yield from _sandbox_lines(report)
    else:
        named = () if summary.name == "default" else ("--name", summary.name)
        up = shell_words("eosctl", "sandbox", "up", *named)
        yield f"There is no sandbox {format_cell(summary.name)}. `{up}` starts it."


def _down_lines(report: Report) -> Iterable[str]:
    """Say what was stopped."""
    summary = report.summary_of(DownSummary)
    stopped = f"was stopped: {', '.join(summary.stopped)}." if summary.stopped else "was not running."
    yield printable(f"Sandbox {summary.name} {stopped}")


def _demo_lines(report: Report) -> Iterable[str]:
    """Yield the facts that were not as expected, and the number of those that were; the walk has shown each of them."""
    for row in report.rows_of(DemoRow):
        line = f"{format_cell(row.proved)}: {format_cell(row.actual)}"
        if row.ok:
            yield Brief("", whole=[f"proved: {line}"])
        else:
            yield f"wrong: {line}, expected {format_cell(row.expected)}"
    summary = report.summary_of(DemoSummary)
    facts = counted(summary.proved + summary.wrong, "fact was", "facts were")
    yield f"{summary.proved} of {facts} as expected."


_NODES = Text(columns=("node", "address", "running", "mode", "pid"), wide=("log",), lines=_sandbox_lines)
SANDBOX_UP = Kind(
    "sandbox-up", "The processes of a new sandbox.", row=NodeRow, summary=UpSummary, data=Sandbox, text=_NODES
)
SANDBOX_STATUS = Kind(
    "sandbox-status",
    "The processes of a sandbox.",
    row=NodeRow,
    summary=StatusSummary,
    data=FoundSandbox,
    text=structs.replace(_NODES, lines=_status_lines),
)
SANDBOX_LOGS = Kind(
    "sandbox-logs", "The last lines of logs.", row=LogLine, data=LogFiles, text=Text(empty="the logs are empty")
)
SANDBOX_DOWN = Kind("sandbox-down", "What was stopped.", summary=DownSummary, text=Text(columns=(), lines=_down_lines))
DEMO = Kind(
    "demo",
    "What the demo proved.",
    row=DemoRow,
    summary=DemoSummary,
    text=Text(columns=(), lines=_demo_lines),
)
