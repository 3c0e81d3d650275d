"""`eosctl watch`: parses, calls one operation, returns its report."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

import click

from eosctl.errors import UsageError
from eosctl.report import Report

from ..frame.options import Duration, EosctlCommand
from ..frame.session import Session

if TYPE_CHECKING:
    from eosctl.watch.run import Display


@click.command("watch", cls=EosctlCommand)
@click.option("--connector", metavar="NAME", help="Only what is about this connector, and what is about none.")
@click.option(
    "--interval", type=Duration(), default="15s", show_default=True, metavar="DURATION",
    help="How often each source is looked at; one that takes longer is looked at less often.",
)  # fmt: skip
@click.option("--until", type=click.Choice(["calm", "finding"]), help="End once the group is so, instead of with q.")
@click.option(
    "--for", "for_s", type=Duration(), metavar="DURATION",
    help="With --until: for so long without interruption (default: once).",
)  # fmt: skip
@click.option("--strict", is_flag=True, help="Warnings count as errors do: they are a finding, and no calm.")
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
    """Watch what doctor finds, live, worst first.

    In a terminal, one screen: each finding with how long it has been there, how old what it says is, and the command
    that fixes it. j and k or the arrow keys choose a line; Enter shows what it means, and the command to be copied; ?
    shows all keys and how each source is; q ends it and leaves the lines below the prompt. What is gone stays for a
    minute. A source that can't be collected is a line, too, and what it said last stays, with its age. Nothing is
    written to the cluster, and no connector config is validated.

    In a pipe, or where TERM is dumb, there is a line for each change (appeared, changed, gone), with -o ndjson a JSON
    object; a number that only grows is no change. -o json and yaml need --until: their one document has the lines at
    the end.

    With --until calm the exit code is 0 once no finding is an error or uncertain, and every source could be collected
    as a whole, for as long as --for says; with --until finding it is 3 once a finding is an error. When --timeout is
    over first it is 4, after q or Ctrl-C 130; the lines are printed in each case. Without --timeout, or without
    --until, it goes on for ever.
    Needs Kafka 3.0 and Connect 3.3.

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
    from eosctl.output.screen.terminal import LiveTerminal
    from eosctl.watch.display import ChangeStream, WatchScreen

    if session.may_steer(sys.stdout):
        return WatchScreen(LiveTerminal(sys.stdout, color=session.color(sys.stdout)))
    return ChangeStream(sys.stdout, session.change_printer(), session.stopwatch().clock)
