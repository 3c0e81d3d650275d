"""`eosctl history`: parses, calls one operation, returns its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .frame.options import EosctlCommand
from .frame.session import Session

if TYPE_CHECKING:
    from eosctl.report import Report


@click.command("history", cls=EosctlCommand)
@click.option(
    "--since",
    metavar="WHEN",
    help="Only writes begun since then: 2026-11-21T08:00:00Z, 2026-11-21, or 90m, 12h, 7d ago.",
)
@click.option("--command", "command", metavar="WORDS", help="Only this command or group: fence, 'offsets merge'.")
@click.pass_context
def history(ctx: click.Context, since: str | None, command: str | None) -> Report:
    """Show the audit log: what eosctl wrote.

    Every write that was begun has one line, even if it failed, was interrupted or was killed: who, when, where, with
    which arguments, what it touched (connectors, transactional ids, topics, workers), which checks were waived, the
    outcome, and the undo command. A write that a safety check refused has a line with the outcome refused; -o wide
    shows the reason. Plans that were only shown, or answered with no, are not listed. -o json has the digests of the
    plan and of the values before and after it. Reads --audit-log FILE, else audit.jsonl in the state directory. Needs
    no Kafka.

    Example: eosctl history --since 7d --command offsets
    """
    from eosctl.state.history import read_history, since_ms

    session = ctx.ensure_object(Session)
    log = session.audit_log()
    return read_history(log, since_ms=since_ms(since, log.clock) if since else None, command=command)
