"""`eosctl schema`: the JSON Schemas, as data like everything else."""

from __future__ import annotations

import click

from eosctl.report import Report

from .options import EosctlCommand


@click.command(cls=EosctlCommand)
@click.argument("kind", required=False)
def schema(kind: str | None) -> Report:
    """JSON Schemas of what `-o json` prints.

    Without KIND: the kinds. With KIND: its schema (2020-12) as it is, ready for a validator; with -o json it is
    data.schema. -o yaml prints the same document, -o ndjson its data.rows, one a line. Fields may be added to a kind,
    never renamed or removed. Needs no Kafka.

    Example: eosctl schema fence-plan > fence-plan.schema.json
    """
    from eosctl.ops.reference import list_kinds, show_schema

    return list_kinds() if kind is None else show_schema(kind)
