"""The rows of `workers`: the workers of a group and the work of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from eosctl.output.cells import format_cell
from eosctl.output.rows import Counts, Header, Kind, Printed, Text
from eosctl.report import Report

WorkerMode = Literal["enabled", "not_enabled", "preparing", "disabled", "unknown"]


class TaskPart(Printed):
    """A task."""

    connector: Annotated[str, "The connector of the task."]
    task: Annotated[int, "The number of the task."]

    def cell(self) -> str:
        """Format the task like the owners of transactional ids."""
        return f"{self.connector}/{self.task}"


class AssignedPart(Printed):
    """The work that the group has assigned to a worker."""

    connectors: Annotated[list[str], "The connectors that the worker runs."]
    tasks: Annotated[list[TaskPart], "The tasks that the worker runs."]

    @Header("CONNECTORS")
    def few_connectors(self) -> str:
        """Return the connectors that the worker runs, or their number if there are many."""
        return _names_or_number(self.connectors)

    @Header("TASKS")
    def few_tasks(self) -> str:
        """Return the tasks that the worker runs, or their number if there are many."""
        return _names_or_number([task.cell() for task in self.tasks])

    def all_connectors(self) -> list[str] | None:
        """Return the connectors that the worker runs, if there are many."""
        return self.connectors if len(self.connectors) > _MOST_NAMES else None

    def all_tasks(self) -> list[TaskPart] | None:
        """Return the tasks that the worker runs, if there are many."""
        return self.tasks if len(self.tasks) > _MOST_NAMES else None


_MOST_NAMES = 9


def _names_or_number(names: Sequence[str]) -> str:
    return ", ".join(names) or "-" if len(names) <= _MOST_NAMES else f"{len(names):,}"


class WorkerRow(Printed):
    """A worker."""

    url: Annotated[str | None, "Where the worker's REST interface is reached."]
    member_id: Annotated[str | None, "The id under which the worker is a member of the group."]
    leader: Annotated[bool, "Whether the worker leads the group."]
    version: Annotated[str | None, "The version of Connect; `-` where it is not known."]
    health: Annotated[str, "Whether the worker's REST interface answers."]
    config_offset: Annotated[int | None, "How far the worker had read the config topic at the last rebalance."]
    config_lag: Annotated[int | None, "How many records the config topic has behind this offset.", Header("LAG")]
    assigned: Annotated[AssignedPart | None, "What the group has given the worker to run; null where it is not known."]
    mode: Annotated[WorkerMode, "The worker's exactly-once mode."]
    evidence: Annotated[list[str], "What the mode is known by."]


class WorkersSummary(Printed):
    """The number of workers."""

    workers: Annotated[int, "How many members the group has."]
    modes: Annotated[Counts, "How many members have each mode."]


class GroupPart(Printed):
    """The group."""

    state: Annotated[str | None, "The state of the group; null where no Kafka cluster was asked."]
    protocol: Annotated[str | None, "The protocol that its members speak."]
    leader_member_id: Annotated[str | None, "The member that leads it."]
    leader_url: Annotated[str | None, "The URL of that member."]


class GroupData(Printed):
    """The group that the workers are in."""

    group: Annotated[GroupPart, "The group that the workers are in."]


def _group_line(report: Report) -> Iterable[str]:
    """Yield the group's state in one line, then the summary."""
    group = report.data_of(GroupData).group
    if group.state is not None:
        protocol = format_cell(group.protocol)
        yield f"group: {format_cell(report.target.get('group_id'))}, state: {group.state}, protocol: {protocol}"
    yield modes_line(report.summary_of(WorkersSummary).workers, report.summary_of(WorkersSummary).modes)


def modes_line(workers: int, modes: Counts) -> str:
    """Format the number of workers, in total and per mode."""
    counts = ", ".join(f"{count} {mode}" for mode, count in modes.items())
    return f"workers: {workers}" + (f" ({counts})" if counts else "")


_WORKER = ("url", "leader", "version", "health", "mode")
_EMPTY = "The group has no worker."
WORKERS_LIST = Kind(
    "workers-list",
    "The workers of a Connect group, and what each runs.",
    row=WorkerRow,
    summary=WorkersSummary,
    data=GroupData,
    text=Text(
        columns=(*_WORKER, "config_lag", "assigned.few_connectors", "assigned.few_tasks"),
        wide=("member_id", "config_offset", "evidence", "assigned.all_connectors?", "assigned.all_tasks?"),
        lines=_group_line,
        empty=_EMPTY,
    ),
)
WORKERS_PROBE = Kind(
    "workers-probe",
    "The workers' exactly-once modes, with the evidence.",
    row=WorkerRow,
    summary=WorkersSummary,
    data=GroupData,
    text=Text(columns=(*_WORKER, "evidence"), wide=("member_id", "config_offset"), lines=_group_line, empty=_EMPTY),
)
