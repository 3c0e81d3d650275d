"""The rows of `history`: the entries of the audit log, also of an older eosctl with fewer members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from eosctl.core.kept.typed_json import WrongMemberError, typed
from eosctl.output.parts import Counts
from eosctl.output.rows import Header, Kind, Members, Printed, Text, Time

_MOST_NAMED = 3
_NOUNS = {
    "connectors": ("connector", "connectors"),
    "transactional_ids": ("id", "ids"),
    "topics": ("topic", "topics"),
    "workers": ("worker", "workers"),
    "principals": ("principal", "principals"),
}


class Entry(dict[str, object]):
    """An entry of the log, unchanged: a member that this eosctl does not know stays."""

    @Header("TOUCHED")
    def touched_by_name(self) -> str | None:
        """Return the connectors, ids, topics, workers and principals that the write affects, the first few of each."""
        touched = self["touched"]
        found = [_named(kind, touched[kind]) for kind in _NOUNS if kind in touched] if isinstance(touched, dict) else []
        return "; ".join(found) or None

    @Header("OVERRIDES")
    def names_of_overrides(self) -> list[str] | None:
        """Return the options that waive a check."""
        overrides = self.get("overrides")
        return list(overrides) if isinstance(overrides, Mapping) else None


def _named(kind: str, names: Sequence[str]) -> str:
    one, many = _NOUNS[kind]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{one if len(names) == 1 else many} {', '.join(names[:_MOST_NAMED])}{more}"


class HistorySummary(Printed):
    """The number of writes, in total and per outcome."""

    writes: Annotated[int, "How many writes there were; refused ones are none."]
    outcomes: Annotated[Counts, "How many entries have each outcome."]
    damaged: Annotated[int, "How many lines of the log are damaged."]


class HistoryData(Printed):
    """The file of the log."""

    log: Annotated[str, "The file that the entries are in."]


class WrittenTo(Printed):
    """The cluster, the group and the addresses of a write."""

    kafka_cluster_id: Annotated[str | None, "The id of the Kafka cluster."] | UnsetType = UNSET
    group_id: Annotated[str | None, "The Connect group.", Header("GROUP")] | UnsetType = UNSET
    bootstrap_servers: Annotated[list[str], "The brokers that were named."] | UnsetType = UNSET
    connect_urls: Annotated[list[str], "The workers that were named."] | UnsetType = UNSET


class RecordedError(Printed):
    """The reason why a command failed."""

    code: Annotated[str, "The code of the error."]
    message: Annotated[str, "Why the command failed.", Header("ERROR")]


_MEMBERS: dict[str, Any] = {
    "id": Annotated[str, "The id of the entry."],
    "time": Annotated[Time, "When the command began to write."],
    "time_ms": Annotated[int, "The same in milliseconds since 1970."],
    "ended": Annotated[Time | None, "When it ended."],
    "ended_ms": Annotated[int | None, "The same in milliseconds since 1970."],
    "user": Annotated[str, "Who ran the command."],
    "sudo_user": Annotated[str | None, "Who ran it through sudo."],
    "host": Annotated[str, "The machine it ran on."],
    "pid": Annotated[int, "The id of its process."],
    "command": Annotated[str, "The command."],
    "arguments": Annotated[dict[str, object], "Its arguments and options."],
    "touched": Annotated[dict[str, object], "What the write was about: names, by what they name."],
    "overrides": Annotated[dict[str, object], "The options that set a check aside."],
    "target": Annotated[WrittenTo, "The cluster, the group and the addresses of the write."],
    "plan_digest": Annotated[str, "The digest of the plan."],
    "before_digest": Annotated[str | None, "The digest of the former values."],
    "after_digest": Annotated[str | None, "The digest of the values afterwards."],
    "outcome": Annotated[str | None, "What came of the write: a status, `interrupted`, `refused` or `killed`."],
    "exit_code": Annotated[int | None, "The exit code of the command.", Header("EXIT")],
    "summary": Annotated[dict[str, object], "The summary of its report."],
    "backup": Annotated[object, "The file that the values from before are in."],
    "undo": Annotated[object, "The command that takes the write back."],
    "error": Annotated[RecordedError | None, "Why the command failed."],
}


def is_entry(found: Mapping[str, object]) -> bool:
    """Decide whether a line's content is an entry: none of its members has another type than in `Entry`."""
    try:
        typed(found, _line())
    except WrongMemberError:
        return False
    return True


@cache
def _line() -> type[object]:
    members = [(name, each | UnsetType, UNSET) for name, each in _MEMBERS.items()]
    return msgspec.defstruct("Line", members)


HISTORY = Kind(
    "history",
    "Entries of the audit log.",
    row=Annotated[Entry, Members({name: each | UnsetType for name, each in _MEMBERS.items()})],
    summary=HistorySummary,
    data=HistoryData,
    text=Text(
        columns=(
            *("time", "user", "command", "target.group_id", "touched_by_name", "names_of_overrides", "outcome"),
            *("exit_code", "undo"),
        ),
        wide=("error.message",),
        empty="Nothing was written so far.",
    ),
)
