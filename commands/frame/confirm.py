"""Show the plan, ask, apply, record: the one way in which commands write."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from eosctl.core.allowances import Waiver
from eosctl.errors import EosctlError, InterruptedByUserError, RefusedError, UnconfirmedError, UsageError
from eosctl.foreign import printable
from eosctl.output import render_problems, render_report
from eosctl.report import Problem, Report

from .session import Session

if TYPE_CHECKING:
    from eosctl.plan import Plan
    from eosctl.state.audit import AuditedCommand
    from eosctl.target import Target

_MOST_PLAN_ROWS = 15
"""So many fit a screen of 24 lines, with the question. `--dry-run` prints more."""


def run_plan(plan: Plan, *, yes: bool, dry_run: bool) -> Report:
    """Show `plan`, ask, and apply it; return the result's report, or the plan's if nothing is applied.

    The plan is shown on stderr, so that stdout holds one document. Every applied plan leaves one line in the audit log,
    whatever became of it; `write_options` adds those of refused ones. Raises the plan's refusal; UnconfirmedError when
    the answer is no, or when there is no terminal to ask on and no `--yes`; InterruptedByUserError on Ctrl-C;
    RefusedError when the plan is about another cluster or group than the profile expects, or when it can't be recorded;
    UsageError when the workers' files disagree on the group's topics.
    """
    session = click.get_current_context().ensure_object(Session)
    shown = plan.report(dry_run=dry_run)
    if plan.apply is None:
        return shown
    unexpected = _unexpected(plan.target, shown)
    if dry_run:
        warnings = [] if unexpected is None else [Problem.of(unexpected).as_warning()]
        return replace(shown, problems=[*shown.problems, *warnings])
    if unexpected is not None:
        raise unexpected
    log = session.audit_log()
    log.require_writable()
    session.quiet_progress()
    output = "wide" if session.output == "wide" else "text"
    color = session.color(sys.stderr)
    render_report(shown, output=output, stream=sys.stderr, color=color, most_rows=_MOST_PLAN_ROWS)
    render_problems(shown, stream=sys.stderr)
    session.shown_problems += shown.problems
    if not yes:
        _ask(plan.question, session)
    session.write_begun = True
    return log.record(_action(session, plan.target), shown, plan.apply)


def _unexpected(target: Target, plan: Report) -> EosctlError | None:
    """Return the error that the plan is not about the expected cluster or group, if so."""
    from eosctl.state.expectations import require_expected

    try:
        target.require_agreement()
        require_expected(target.expect, plan.target)
    except (RefusedError, UsageError) as exc:
        return exc
    return None


def note_refusal(why: Problem, plan: Report | None = None) -> None:
    """Record in the audit log what a safety check refused; if that fails, let the refusal stand alone.

    A write that had begun already has a line, and a plan that the user declined was not refused by a check.
    """
    session = click.get_current_context().ensure_object(Session)
    if session.write_begun or why.code == UnconfirmedError.code:
        return
    with suppress(OSError, EosctlError):
        target = session.target()
        plan = plan or Report("plan", target={"kafka_cluster_id": None, "group_id": target.group_id})
        session.audit_log().add_refused(_action(session, target), plan, why)


def _ask(question: str, session: Session) -> None:
    if not session.may_ask():
        raise UnconfirmedError(
            "this writes, and there is no terminal to ask on; nothing was written",
            hint="Look at the plan with --dry-run, then run again with --yes.",
        )
    try:
        with session.stopwatch().stopped():  # reading a plan takes its time, which is not the cluster's
            agreed = click.confirm(printable(question), default=False, err=True)
    except click.Abort as exc:
        click.echo(err=True)  # the cursor is still behind the question
        if isinstance(exc.__context__, KeyboardInterrupt):  # click makes one of Ctrl-C and of the end of input
            raise InterruptedByUserError("interrupted at the question; nothing was written") from exc
        raise UnconfirmedError("the question was not answered; nothing was written") from exc
    if not agreed:
        raise UnconfirmedError("answered with no; nothing was written")


def _action(session: Session, target: Target) -> AuditedCommand:
    """Return the user's command, with the options that were given."""
    from eosctl.state.audit import AuditedCommand

    context = click.get_current_context()
    given = {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
    }
    return AuditedCommand(
        command=context.command_path.partition(" ")[2],
        arguments=given,
        overrides=[waiver.option for waiver in Waiver if given.get(waiver.option)],
        target=target,
        sudo_user=session.environ.get("SUDO_USER"),
    )
