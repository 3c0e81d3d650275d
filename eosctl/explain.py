"""`eosctl schema` and `eosctl explain`: what the tables say, as reports. Touches no cluster and no file."""

from __future__ import annotations

from collections.abc import Iterable

from eosctl.core.wording import did_you_mean
from eosctl.errors import NotFoundError
from eosctl.reference import SECTIONS, Entry
from eosctl.report import Report
from eosctl.schemas import KINDS, schema_of


def list_kinds() -> Report:
    """Every kind of document, by name."""
    rows = [{"kind": name, "what": KINDS[name].what} for name in sorted(KINDS)]
    return Report(kind="schema-list", rows=rows, summary={"kinds": len(rows)})


def show_schema(kind: str) -> Report:
    """The schema of one kind; raises NotFoundError naming those that are spelled nearly so."""
    if kind not in KINDS:
        raise NotFoundError(f"there is no kind {kind!r}", hint=_nearest(kind, KINDS, listing="eosctl schema"))
    return Report(kind="schema", summary={"kind": kind}, data={"schema": schema_of(kind)})


def _nearest(word: str, known: Iterable[str], *, listing: str) -> str:
    return did_you_mean(word, known, most=5, otherwise=f"See all of them: {listing}")


def list_entries() -> Report:
    """Every code and word, by type."""
    return _entries(known_entries())


def explain(code: str) -> Report:
    """One code or word; raises NotFoundError naming those that are spelled nearly so."""
    entries = known_entries()
    wanted = code.casefold()
    found = [(kind, entry) for kind, entry in entries if entry.code.casefold() == wanted]
    if not found:
        names = [entry.code for _kind, entry in entries]
        raise NotFoundError(f"there is no code {code!r}", hint=_nearest(code, names, listing="eosctl explain"))
    return _entries(found)


def known_entries() -> list[tuple[str, Entry]]:
    """(type, entry) of everything that can be explained."""
    return [(kind, entry) for kind, entries in SECTIONS.items() for entry in entries]


def finding_codes() -> list[str]:
    """What can stand as the code of a finding: gates that fail and what a check could not see are findings, too."""
    return [entry.code for kind, entry in known_entries() if kind in ("finding", "gate", "warning", "error")]


def _entries(entries: list[tuple[str, Entry]]) -> Report:
    rows = [
        {"code": entry.code, "type": kind, "meaning": entry.meaning, "next": entry.next or None}
        for kind, entry in entries
    ]
    return Report(kind="explain", rows=rows, summary={"entries": len(rows)})
