"""Collects the names that a write affects: connectors, transactional ids, topics, workers, principals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eosctl.core.offsets.names import DEDICATED, GLOBAL
from eosctl.report import Json, Report, plain

KINDS = ("connectors", "transactional_ids", "topics", "workers", "principals")
_MOST = 1000
"""The largest number of names per kind; `left_out` counts the others, as a bulk write affects very many ids."""
_UNTOUCHED = {"keep", "kept", "conflict", "skipped_unknown", "done_before", "not_reached"}
# member of a row -> its kind
_OF_ROWS = {
    "connector": "connectors",
    "transactional_id": "transactional_ids",
    "topic": "topics",
    "worker": "workers",
    "principal": "principals",
}
_OF_DATA = {"connector": "connectors", "connectors": "connectors", "from": "topics", "to": "topics"}
_OF_ARGUMENTS = {
    "connector": "connectors",
    "connectors": "connectors",
    "transactional_ids": "transactional_ids",
    "topic": "topics",
    "topics": "topics",
}


class AffectedNames:
    """The affected names of a plan or a result, by kind; its rows are added one by one."""

    def __init__(self, report: Report, arguments: Mapping[str, object]) -> None:
        self._found: dict[str, set[str]] = {kind: set() for kind in KINDS}
        self._add_members(_OF_ARGUMENTS, arguments)
        data = plain(report.data)
        self._add_members(_OF_DATA, data)
        fence = data.get("fence")
        for row in fence["rows"] if isinstance(fence, Mapping) else ():
            self.add(row)
        for kind, names in (report.touches or {}).items():
            self._found[kind].update(names)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add the names of a row; there may be millions, so this is only a lookup per member."""
        if row.get("action") in _UNTOUCHED or row.get("outcome") in _UNTOUCHED:
            return
        found = self._found
        for member, kind in _OF_ROWS.items():
            if name := row.get(member):
                found[kind].add(str(name))
        if target := row.get("target"):
            found["topics"].add(str(target["topic"]))
        if (owner := row.get("owner")) and owner["connector"]:
            found["connectors"].add(owner["connector"])

    def names(self) -> dict[str, Json]:
        """Return the names by kind, sorted, without empty kinds."""
        self._found["topics"] -= {GLOBAL, DEDICATED}
        affected: dict[str, Json] = {kind: sorted(names)[:_MOST] for kind, names in self._found.items() if names}
        left_out = sum(max(0, len(names) - _MOST) for names in self._found.values())
        return affected | ({"left_out": left_out} if left_out else {})

    def _add_members(self, kinds: Mapping[str, str], members: Mapping[str, object]) -> None:
        for member, kind in kinds.items():
            value = members.get(member)
            names = value if isinstance(value, list | tuple) else [value]
            self._found[kind].update(name for name in names if isinstance(name, str))


def affected_names(entry: Mapping[str, object]) -> Mapping[str, Any]:
    """Return the names of an entry of the audit log; of an older eosctl's, as far as its arguments show them."""
    recorded = entry.get("touched")
    if isinstance(recorded, Mapping):
        others = {name: each for name, each in recorded.items() if name not in KINDS}
        named = {kind: recorded[kind] for kind in KINDS if isinstance(recorded.get(kind), list)}
        return {kind: [str(name) for name in names] for kind, names in named.items()} | others
    arguments = entry.get("arguments")
    return AffectedNames(Report("entry"), arguments if isinstance(arguments, Mapping) else {}).names()
