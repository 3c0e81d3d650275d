"""`eosctl schema` and `eosctl explain`: what the tables say, as reports. Touches no cluster and no file."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from eosctl.errors import NotFoundError
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
    near = difflib.get_close_matches(word, known, n=5, cutoff=0.5)
    return f"Did you mean {', '.join(near)}?" if near else f"See all of them: {listing}"
