"""`eosctl schema` and `eosctl explain`: what the tables say, as reports. Touches no cluster and no file."""

from __future__ import annotations

from collections.abc import Iterable

from eosctl.codes import Code
from eosctl.core.wording import did_you_mean
from eosctl.errors import NotFoundError
from eosctl.explain.entries import known_entries
from eosctl.explain.kinds import all_kinds, declared_kinds, schema_of
from eosctl.explain.rows import (
    EXPLAIN,
    SCHEMA,
    SCHEMA_LIST,
    EntriesSummary,
    ExplainedRow,
    KindRow,
    KindsSummary,
    KindSummary,
    SchemaData,
)
from eosctl.output.columns import words_of_columns
from eosctl.report import Report


def list_kinds() -> Report:
    """Every kind of document, by name."""
    rows = [KindRow(kind=name, what=what) for name, what in all_kinds().items()]
    return Report(kind=SCHEMA_LIST, rows=rows, summary=KindsSummary(kinds=len(rows)))


def show_schema(kind: str) -> Report:
    """The schema of one kind; raises NotFoundError naming those that are spelled nearly so."""
    if kind not in all_kinds():
        raise NotFoundError(f"there is no kind {kind!r}", hint=_nearest(kind, all_kinds(), listing="eosctl schema"))
    return Report(kind=SCHEMA, summary=KindSummary(kind=kind), data=SchemaData(schema=schema_of(kind)))


def _nearest(word: str, known: Iterable[str], *, listing: str) -> str:
    return did_you_mean(word, known, most=5, otherwise=f"See all of them: {listing}")


def list_entries() -> Report:
    """Every code and word, by type."""
    return _entries(known_entries())


def explain(code: str) -> Report:
    """One code, word or column; raises NotFoundError naming those that are spelled nearly so."""
    entries = [*known_entries(), *known_columns()]
    wanted = code.casefold()
    found = [entry for entry in entries if entry.casefold() == wanted]
    if not found:
        raise NotFoundError(f"there is no code {code!r}", hint=_nearest(code, entries, listing="eosctl explain"))
    return _entries(found)


def known_columns() -> list[Code]:
    """What each column of a table says; columns of several kinds that say the same are one entry."""
    kinds_of: dict[tuple[str, str], list[str]] = {}
    for name, kind in declared_kinds().items():
        for column in words_of_columns(kind):
            kinds_of.setdefault(column, []).append(name)
    return [
        Code(header, "column", f"{words} (In {', '.join(names)}.)")
        for (header, words), names in sorted(kinds_of.items())
    ]


def _entries(entries: list[Code]) -> Report:
    rows = [
        ExplainedRow(code=str(entry), type=entry.kind, meaning=entry.meaning, next=entry.next or None)
        for entry in entries
    ]
    return Report(kind=EXPLAIN, rows=rows, summary=EntriesSummary(entries=len(rows)))
