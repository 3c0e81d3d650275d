"""A connector as Connect's REST interface shows it: the one place that parses its responses. Pure.

Members that are missing, or are not as Connect writes them, are left out: a worker of any version may respond.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from eosctl.core.ids import WorkerId

_NOWHERE = WorkerId("")
UNTOLD = "unknown"
"""The state of a part that the response does not report."""


class PartStatus(Struct, frozen=True):
    """The status of the connector itself.

    `worker_id` is its worker's host:port, `trace` the stack trace of its failure.
    """

    state: str = UNTOLD
    worker_id: WorkerId = _NOWHERE
    trace: str = ""


class TaskStatus(Struct, frozen=True):
    """The status of one task: `state` is RUNNING, PAUSED, FAILED, UNASSIGNED, RESTARTING or DESTROYED.

    `worker_id` is its worker's host:port, `trace` the stack trace of a FAILED one, else empty.
    """

    task: int
    state: str
    worker_id: WorkerId
    trace: str = ""


class ConnectorEntry(Struct, frozen=True):
    """A connector with its config, its state and its tasks; `itself` None: the response shows no state.

    `tasks` are by number; `wanted` are the numbers of the newest task set. `type` is source, sink or unknown.
    """

    type: str = UNTOLD
    config: Mapping[str, str] = {}
    itself: PartStatus | None = None
    tasks: tuple[TaskStatus, ...] = ()
    wanted: tuple[int, ...] = ()

    @property
    def state(self) -> str:
        """The connector's own: RUNNING, PAUSED, STOPPED, FAILED, UNASSIGNED, …, or unknown."""
        return UNTOLD if self.itself is None else self.itself.state

    @property
    def trace(self) -> str:
        """The stack trace of the connector's own failure."""
        return "" if self.itself is None else self.itself.trace

    def parts(self) -> tuple[PartStatus | TaskStatus, ...]:
        """Return the connector itself, if its state is known, and its tasks."""
        return self.tasks if self.itself is None else (self.itself, *self.tasks)

    def workers(self) -> frozenset[WorkerId]:
        """Return the host:port of each worker that runs a part of it."""
        return frozenset(part.worker_id for part in self.parts() if part.worker_id)

    def in_words(self) -> str:
        """Describe its states, with the first line of a failure; for an error after waiting in vain."""
        traces = [part.trace.splitlines()[0] for part in self.parts() if part.trace]
        tasks = ", ".join(f"task {task.task} {task.state}" for task in self.tasks) or "no tasks"
        return "; ".join([f"connector {self.state}", tasks, *traces[:1]])


def read_entry(entry: Mapping[str, object]) -> ConnectorEntry:
    """Read an entry of `GET /connectors?expand=info&expand=status`; raises ValueError for a task without a number."""
    info, status = mapping_of(entry.get("info")), mapping_of(entry.get("status"))
    itself = mapping_of(status.get("connector"))
    tasks = [mapping_of(each) for each in _list_of(status.get("tasks"))]
    return ConnectorEntry(
        type=str(info.get("type") or status.get("type") or UNTOLD),
        config={key: str(value) for key, value in mapping_of(info.get("config")).items() if value is not None},
        itself=read_part(itself) if itself else None,
        tasks=tuple(sorted((read_task(int(str(each.get("id"))), each) for each in tasks), key=lambda each: each.task)),
        wanted=tuple(sorted(int(str(mapping_of(each).get("task"))) for each in _list_of(info.get("tasks")))),
    )


def read_part(status: Mapping[str, object]) -> PartStatus:
    """Read the connector's own status, as REST and the status topic spell it.

    The host is converted to lower case, as in all URLs here.
    """
    worker_id = WorkerId(str(status.get("worker_id") or "").lower())
    return PartStatus(str(status.get("state", UNTOLD)), worker_id, str(status.get("trace") or ""))


def read_task(number: int, status: Mapping[str, object]) -> TaskStatus:
    """Read the status of a task, as REST and the status topic spell it."""
    part = read_part(status)
    return TaskStatus(number, part.state, part.worker_id, part.trace)


def mapping_of(value: object) -> Mapping[str, object]:
    """Return a JSON value if it is an object, else an empty mapping."""
    return value if isinstance(value, Mapping) else {}


def _list_of(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def plugin_type(config: Mapping[str, object] | None, reported: str | None = None) -> str:
    """Return `source`, `sink` or `unknown` (deleted): as Connect reports it, else judged by class name and `topics`.

    Only source connectors have task-count records, and the config topic itself does not record the type.
    """
    if reported in ("source", "sink"):
        return reported
    if config is None:
        return "unknown"
    simple_name = str(config.get("connector.class", "")).rpartition(".")[2]
    if "Sink" in simple_name:
        return "sink"
    if "Source" in simple_name or simple_name.startswith("Mirror"):
        return "source"
    return "sink" if {"topics", "topics.regex"} & config.keys() else "source"
