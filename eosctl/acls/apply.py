"""Adds the missing ACLs (`acls apply`) and reads them back.

It adds ALLOW ACLs and never removes one. A DENY that prevents a right is reported, with the line that removes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import asdict

from eosctl.acls.check import judge_all, judged_row
from eosctl.acls.rows import (
    ACLS_APPLY_PLAN,
    ACLS_APPLY_RESULT,
    ActionsSummary,
    AddedAclRow,
    ErrorPart,
    PlannedAclRow,
    UndoData,
)
from eosctl.acls.rules import AclIndex, RightJudgement, RightVerdict, acl_of
from eosctl.acls.wanted import gather_wanted
from eosctl.app import App
from eosctl.core.acls.lines import Acl, AclRequest, kafka_acls_lines
from eosctl.core.wording import counted
from eosctl.deadline import Event
from eosctl.errors import (
    DeadlineError,
    EosctlError,
    ExitCode,
    RefusedError,
    StalePlanError,
    UnconfirmedError,
    UnreachableError,
)
from eosctl.foreign import Lines
from eosctl.output.rows import Kind
from eosctl.plan import Plan
from eosctl.ports import AclClient
from eosctl.report import Problem, Report

_POLL_S = 0.1
_NO_ANSWER = (DeadlineError, UnreachableError)


class AclPlan(Struct, frozen=True):
    """A plan to add ACLs: the judgement of each needed right, and problems."""

    request: AclRequest
    cluster_id: str
    judgements: Sequence[RightJudgement]
    problems: Sequence[Problem]

    def missing(self) -> list[Acl]:
        """Return the ACLs to add, in the table's order."""
        found = (each for each in self.judgements if each.verdict is RightVerdict.MISSING)
        return list(dict.fromkeys(acl_of(each.right, each.principal) for each in found))


def plan_acls(app: App, request: AclRequest) -> AclPlan:
    """Return the plan of what `apply_acls` would add. Raises RefusedError where a DENY takes away a needed right."""
    wanted = gather_wanted(app, request, look=True, named=True)
    wanted.require_principals()
    with app.acls() as store:
        cluster_id, acls = store.cluster_id(), store.describe()
    judgements, problems = judge_all(app, wanted, AclIndex(acls))
    denied = [each for each in judgements if each.verdict is RightVerdict.DENIED]
    if denied:
        raise _denied(app, denied)
    return AclPlan(request, cluster_id, judgements, [*wanted.problems, *problems])


def _denied(app: App, denied: Sequence[RightJudgement]) -> RefusedError:
    first = denied[0]
    because = dict.fromkeys(acl for each in denied for acl in each.because)
    lines = kafka_acls_lines(because, settings=app.target.client, remove=True)
    return RefusedError(
        f"{first.principal} is denied {first.right.operation} on {first.right.resource}: no added ACL changes that",
        hint=Lines.of("Take the DENY away first:", *lines),
    )


def prepare_acls(app: App, request: AclRequest) -> Plan:
    """Return the plan to add the missing ACLs; raises as `plan_acls`."""
    plan = plan_acls(app, request)
    count = len(plan.missing())
    apply = partial(apply_acls, app, plan) if count else None
    return Plan(partial(show_acls, app, plan), f"Add {count} ACLs?", apply, app.target)


def show_acls(app: App, plan: AclPlan) -> Report:
    """Return the report of the plan."""

    def action(each: RightJudgement) -> str:
        return "create" if each.verdict is RightVerdict.MISSING else "keep"

    return _apply_report(app, plan, ACLS_APPLY_PLAN, action)


def apply_acls(app: App, plan: AclPlan) -> Report:
    """Add the missing ACLs and wait until the cluster reports them.

    Raises StalePlanError when other ACLs are missing now than in the plan, and the first ACL's error where none was
    added.
    """
    missing = plan.missing()
    with app.acls() as store:
        if (store.cluster_id(), plan_acls(app, plan.request).missing()) != (plan.cluster_id, missing):
            raise StalePlanError("the cluster's ACLs have changed since the plan was made", hint="Plan again.")
        failed = store.create(missing)
        refused = {acl: error for acl, error in failed.items() if not isinstance(error, _NO_ANSWER)}
        existing = _read_back(app, store, [acl for acl in missing if acl not in refused])
    if len(failed) == len(missing) and existing.isdisjoint(missing):
        raise next(iter(failed.values()))

    def outcome(each: RightJudgement) -> str:
        acl = acl_of(each.right, each.principal)
        if each.verdict is not RightVerdict.MISSING:
            return "kept"
        return "created" if acl in existing else "failed" if acl in refused else "unconfirmed"

    return _apply_report(app, plan, ACLS_APPLY_RESULT, outcome, refused)


def _read_back(app: App, store: AclClient, wanted: Sequence[Acl]) -> set[Acl]:
    """Read the ACLs until all of `wanted` are among them. A failed read is an event, and counts as not found."""
    existing = set[Acl]()
    try:
        for _ in app.deadline.rounds(_POLL_S):
            existing = set(store.describe())
            if existing.issuperset(wanted):
                return existing
        raise app.deadline.passed("reading the ACLs back")
    except EosctlError as exc:
        app.on_event(Event(exc.message, warning=True))
    return existing


def _apply_report(
    app: App,
    plan: AclPlan,
    kind: Kind,
    outcome: Callable[[RightJudgement], str],
    refused: Mapping[Acl, EosctlError] | None = None,
) -> Report:
    """Return the report of the plan or of the result; with `refused`, a row carries the error of its ACL."""
    rows = [_row(each, outcome(each), refused) for each in plan.judgements]
    actions = [row.action for row in rows]
    counts = {action: actions.count(action) for action in dict.fromkeys(actions)}
    problems = [*plan.problems, *({error.message: Problem.of(error) for error in (refused or {}).values()}.values())]
    if unconfirmed := counts.get("unconfirmed", 0):
        message = f"the cluster does not yet say that {counted(unconfirmed, 'new ACL is', 'new ACLs are')} there"
        problems.append(Problem(UnconfirmedError.code, message, hint="Look again: eosctl acls check."))
    added = [
        acl_of(each.right, each.principal)
        for each, action in zip(plan.judgements, actions, strict=True)
        if action in ("create", "created", "unconfirmed")
    ]
    undo = kafka_acls_lines(dict.fromkeys(added), settings=app.target.client, remove=True)
    return Report(
        kind=kind,
        rows=rows,
        summary=ActionsSummary(counts=counts),
        data=UndoData(undo=Lines.of(*undo)) if undo else UndoData(),
        target={"kafka_cluster_id": plan.cluster_id, "group_id": app.target.group_id},
        problems=problems,
        exit_code=ExitCode.PARTIAL if unconfirmed or refused else ExitCode.OK,
    )


def _row(judged: RightJudgement, action: str, refused: Mapping[Acl, EosctlError] | None) -> PlannedAclRow | AddedAclRow:
    members = asdict(judged_row(judged))
    if refused is None:
        return PlannedAclRow(**members, action=action)
    error = refused.get(acl_of(judged.right, judged.principal))
    why = None if error is None else ErrorPart(code=str(error.code), message=error.message)
    return AddedAclRow(**members, action=action, error=why)
