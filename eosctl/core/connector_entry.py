"""A connector's entry in `GET /connectors?expand=info&expand=status`: the one place that takes it apart. Pure.

What is missing, or is not what Connect answers, is left out: a worker of any version may be asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

UNTOLD = "unknown"
"""The state of a part of which the answer says nothing."""


@dataclass(frozen=True, slots=True)
class PartTold:
    """The connector itself or one task: `worker_id` is the host:port where it is, `trace` that of its failure."""

    state: str = UNTOLD
    worker_id: str = ""
    trace: str = ""


@dataclass(frozen=True, slots=True)
class ConnectorEntry:
    """`itself` None: the answer tells no state; `wanted` are the task numbers of the newest task set."""

    type: str
    config: Mapping[str, str]
    itself: PartTold | None
    tasks: Mapping[int, PartTold]
    wanted: tuple[int, ...]


def read_entry(entry: Mapping[str, object]) -> ConnectorEntry:
    """The parts of an entry."""
    info, status = mapping_of(entry.get("info")), mapping_of(entry.get("status"))
    itself = mapping_of(status.get("connector"))
    tasks = [mapping_of(each) for each in _list_of(status.get("tasks"))]
    return ConnectorEntry(
        type=str(info.get("type") or status.get("type") or UNTOLD),
        config={key: str(value) for key, value in mapping_of(info.get("config")).items() if value is not None},
        itself=_part(itself) if itself else None,
        tasks={int(str(each.get("id"))): _part(each) for each in tasks},
        wanted=tuple(sorted(int(str(mapping_of(each).get("task"))) for each in _list_of(info.get("tasks")))),
    )


def _part(said: Mapping[str, object]) -> PartTold:
    return PartTold(str(said.get("state", UNTOLD)), str(said.get("worker_id") or ""), str(said.get("trace") or ""))


def mapping_of(value: object) -> Mapping[str, object]:
    """The object that JSON holds here, or an empty one."""
    return value if isinstance(value, Mapping) else {}


def _list_of(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def plugin_type(config: Mapping[str, object] | None, told: str | None = None) -> str:
    """`source`, `sink` or `unknown` (deleted): what Connect told, else judged by class name and `topics`.

    Only source connectors have task-count records, and the config topic itself does not say which is which.
    """
    if told in ("source", "sink"):
        return told
    if config is None:
        return "unknown"
    simple_name = str(config.get("connector.class", "")).rpartition(".")[2]
    if "Sink" in simple_name:
        return "sink"
    if "Source" in simple_name or simple_name.startswith("Mirror"):
        return "source"
    return "sink" if {"topics", "topics.regex"} & config.keys() else "source"
