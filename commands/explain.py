"""`eosctl explain` and `eosctl schema`: what codes, words and documents mean."""

from __future__ import annotations

import click

from eosctl.report import Report

from .frame.options import EosctlCommand


@click.command(cls=EosctlCommand)
@click.argument("code", required=False, nargs=-1)
def explain(code: tuple[str, ...]) -> Report:
    """What a code or a word means, and what to do next.

    CODE is a code of an error, a warning, a finding or a gate, an exit code, a word of the field (zombie, fencing,
    epoch, LSO, task-count record, global, dedicated, two-step upgrade), or the header of a column (OPEN-FOR). Without
    CODE: all of them but the columns; docs/codes.md has the same table. Needs no Kafka.

    \b
    Example:
      eosctl explain double_spelling
      eosctl explain task-count record
    """
    from eosctl.explain.operations import explain as explain_code
    from eosctl.explain.operations import list_entries

    return explain_code(" ".join(code)) if code else list_entries()


@click.command(cls=EosctlCommand)
@click.argument("kind", required=False)
def schema(kind: str | None) -> Report:
    """JSON Schemas of what `-o json` prints.

    Without KIND: the kinds. With KIND: its schema (2020-12) as it is, ready for a validator; with -o json it is
    data.schema. -o yaml prints the same document, -o ndjson its data.rows, one a line. Fields may be added to a kind,
    never renamed or removed. Needs no Kafka.

    Example: eosctl schema fence-plan > fence-plan.schema.json
    """
    from eosctl.explain.operations import list_kinds, show_schema

    return list_kinds() if kind is None else show_schema(kind)
