"""`eosctl explain`: what a code or a word means."""

from __future__ import annotations

import click

from eosctl.report import Report

from .options import EosctlCommand


@click.command(cls=EosctlCommand)
@click.argument("code", required=False, nargs=-1)
def explain(code: tuple[str, ...]) -> Report:
    """What a code or a word means, and what to do next.

    CODE is a code of an error, a warning, a finding or a gate, an exit code, or a word of the field (zombie, fencing,
    epoch, LSO, task-count record, global, dedicated, two-step upgrade). Without CODE: all of them; docs/codes.md has
    the same table. Needs no Kafka.

    \b
    Example:
      eosctl explain double_spelling
      eosctl explain task-count record
    """
    from eosctl.ops.reference import explain as explain_code
    from eosctl.ops.reference import list_entries

    return explain_code(" ".join(code)) if code else list_entries()
