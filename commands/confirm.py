"""Show the plan, ask, apply: the one way in which commands write."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from eosctl.errors import UnconfirmedError
from eosctl.render import render_problems, render_report
from eosctl.report import Report

from .session import Session


def settle(plan: Report, apply: Callable[[], Report] | None, *, question: str, yes: bool, dry_run: bool) -> Report:
    """Applies `plan` after showing it and asking; returns the result's report, or the plan's where nothing is applied.

    `apply` None means that there is nothing to do. The plan is shown on stderr, so that stdout holds one document.
    Raises UnconfirmedError when the answer is no, or when there is no terminal to ask on and no `--yes`.
    """
    if dry_run or apply is None:
        return plan
    session = click.get_current_context().ensure_object(Session)
    session.quiet_progress()
    render_report(plan, output="text", stream=sys.stderr, color=session.color(sys.stderr))
    render_problems(plan, stream=sys.stderr)
    if not yes:
        _ask(question, session)
    return apply()


def _ask(question: str, session: Session) -> None:
    if not session.may_ask():
        raise UnconfirmedError(
            "this writes, and there is no terminal to ask on; nothing was written",
            hint="Look at the plan with --dry-run, then run again with --yes.",
        )
    try:
        agreed = click.confirm(question, default=False, err=True)
    except click.Abort as exc:
        raise UnconfirmedError("the question was not answered; nothing was written") from exc
    if not agreed:
        raise UnconfirmedError("answered with no; nothing was written")
