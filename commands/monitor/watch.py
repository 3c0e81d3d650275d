"""`eosctl watch`: parses, calls one operation, returns its report."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

import click

from eosctl.errors import UsageError

from ..frame.options import Duration, EosctlCommand
from ..frame.session import Session

if TYPE_CHECKING:
    from eosctl.report import Report
    from eosctl.watch.run import Display


@click.command("watch", cls=EosctlCommand)
@click.option("--connector", metavar="NAME", help="Only findings about this connector, and those about none.")
@click.option(
    "--interval", type=Duration(), default="15s", show_default=True, metavar="DURATION",
    help="How often to collect each source; a slow one is collected less often.",
)  # fmt: skip
@click.option("--until", type=click.Choice(["calm", "finding"]), help="End once all is calm, or there is a finding.")
@click.option(
    "--for", "for_s", type=Duration(), metavar="DURATION",
    help="With --until: for this long without interruption (default: once).",
)  # fmt: skip
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option(
    "--ignore", "ignored", metavar="CODE[:SUBJECT]", multiple=True,
    help="Leave out these findings, as doctor does (repeatable; added to `ignore` of the profile).",
)  # fmt: skip
@click.pass_context
def watch(
    ctx: click.Context,
    *,
    connector: str | None,
    interval: float,
    until: Literal["calm", "finding"] | None,
    for_s: float | None,
    strict: bool,
    ignored: tuple[str, ...],
) -> Report:
    """Watch the findings of doctor live, the worst first.

    In a terminal it shows one screen: each finding with how long it has lasted, the age of its data, and the command
    that fixes it. j and k or the arrow keys choose a line; Enter shows its meaning, and the command to copy; ? shows
    all keys and the state of each source; q quits and leaves the lines in the terminal. A finding that is gone stays
    for a minute. A source that can't be collected is a line, too, and its last findings stay, with their age. Nothing
    is written to the cluster, and no connector config is validated.

    In a pipe, or if TERM is dumb, it prints a line for each change (appeared, changed, gone), with -o ndjson a JSON
    object; a number that only grows is not a change. -o json and yaml need --until: they print one document at the end.

    With --until calm the exit code is 0 once no finding is an error or uncertain, and every source was collected
    completely, for as long as --for; with --until finding it is 3 once a finding is an error. If --timeout ends first,
    it is 4; after q or Ctrl-C it is 130; the lines are printed in each case. Without --timeout, or without --until, it
    runs for ever. Needs Kafka 3.0 and Connect 3.3.

    \b
    Example:
      eosctl watch -b kafka:9092 -g connect-cluster
      eosctl watch --until calm --for 2m --timeout 15m -o ndjson
    """
    from eosctl.checks.ignored import to_ignore
    from eosctl.explain.entries import finding_codes
    from eosctl.watch.run import WatchRequest, run_watch

    session = ctx.ensure_object(Session)
    if for_s is not None and until is None:
        raise UsageError("--for needs --until", hint="Say --until calm or --until finding.")
    if session.output in ("json", "yaml") and until is None:
        raise UsageError(f"-o {session.output} is one document at the end, and a watch has none without --until",
                         hint="Use -o ndjson for a line per change, or say --until.")  # fmt: skip
    app = session.app()
    ignore = to_ignore(app.target, ignored, finding_codes())
    request = WatchRequest(
        interval, connector, until, for_s or 0.0, session.flags.get("timeout"), strict, tuple(ignore)
    )
    return session.without_printed_rows(run_watch(app, request, _display(session)))


def _display(session: Session) -> Display:
    from eosctl.output.screen import LiveTerminal
    from eosctl.watch.display import ChangeStream, WatchScreen

    if session.may_steer(sys.stdout):
        return WatchScreen(LiveTerminal(sys.stdout, color=session.color(sys.stdout)))
    return ChangeStream(sys.stdout, session.change_printer(), session.stopwatch().clock)
