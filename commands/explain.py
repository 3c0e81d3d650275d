"""`eosctl explain` and `eosctl schema`: what codes, words and documents mean."""

from __future__ import annotations

import click

from eosctl.report import Report

from .frame.options import EosctlCommand


@click.command(cls=EosctlCommand)
@click.argument("code", required=False, nargs=-1)
def explain(code: tuple[str, ...]) -> Report:
    """Explain a code or a word, and what to do next.

    CODE is a code of an error, a warning, a finding or a gate, an exit code, a term (zombie, fencing, epoch, LSO,
    task-count record, global, dedicated, two-step upgrade), or the header of a column (OPEN-FOR). Without CODE, all of
    them except the columns are listed; docs/codes.md has the same table. Needs no Kafka.

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
    """Print the JSON Schemas of `-o json`.

    Without KIND, the kinds are listed. With KIND, its schema (2020-12) is printed as is, ready for a validator; -o json
    prints it as data.schema. -o yaml prints the same document, -o ndjson its data.rows, one per line. Fields may be
    added to a kind, never renamed or removed. Needs no Kafka.

    Example: eosctl schema fence-plan > fence-plan.schema.json
    """
    from eosctl.explain.operations import list_kinds, show_schema

    return list_kinds() if kind is None else show_schema(kind)
