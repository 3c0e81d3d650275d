"""acls apply: adds the ACLs that are missing, and reads back that they are there.

It adds ALLOW ACLs and never takes one away: a DENY that stands in the way is named, with the line that removes it.
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
from eosctl.core.acls.binding import Acl
from eosctl.core.acls.lines import kafka_acls_lines
from eosctl.core.acls.request import AclRequest
from eosctl.core.wording import counted
from eosctl.errors import (
    DeadlineError,
    EosctlError,
    ExitCode,
    RefusedError,
    StalePlanError,
    UnconfirmedError,
    UnreachableError,
)
from eosctl.events import Event
from eosctl.foreign import Lines
from eosctl.output.rows import Kind
from eosctl.plan import Plan
from eosctl.ports import AclClient
from eosctl.report import Problem, Report

_POLL_S = 0.1
_NO_ANSWER = (DeadlineError, UnreachableError)


class AclPlan(Struct, frozen=True):
    """What was found, and the ACLs that are to be added."""

    request: AclRequest
    cluster_id: str
    judgements: Sequence[RightJudgement]
    problems: Sequence[Problem]

    def missing(self) -> list[Acl]:
        """The ACLs to add, in the table's order."""
        found = (each for each in self.judgements if each.verdict is RightVerdict.MISSING)
        return list(dict.fromkeys(acl_of(each.right, each.principal) for each in found))


def plan_acls(app: App, request: AclRequest) -> AclPlan:
    """What `apply_acls` would add; raises RefusedError where a DENY takes a needed right away."""
    wanted = gather_wanted(app, request, look=True)
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
    """The plan to add the ACLs that are missing; raises as `plan_acls`."""
    plan = plan_acls(app, request)
    count = len(plan.missing())
    apply = partial(apply_acls, app, plan) if count else None
    return Plan(partial(show_acls, app, plan), f"Add {count} ACLs?", apply, app.target)


def show_acls(app: App, plan: AclPlan) -> Report:
    """The plan as a report."""

    def action(each: RightJudgement) -> str:
        return "create" if each.verdict is RightVerdict.MISSING else "keep"

    return _apply_report(app, plan, ACLS_APPLY_PLAN, action)


def apply_acls(app: App, plan: AclPlan) -> Report:
    """Adds what is missing, and waits until the cluster says that it is there.

    Raises StalePlanError when other ACLs are missing now than the plan says, and what stands against the first ACL
    where none was added.
    """
    missing = plan.missing()
    with app.acls() as store:
        if (store.cluster_id(), plan_acls(app, plan.request).missing()) != (plan.cluster_id, missing):
            raise StalePlanError("the cluster's ACLs have changed since the plan was made", hint="Plan again.")
        failed = store.create(missing)
        refused = {acl: error for acl, error in failed.items() if not isinstance(error, _NO_ANSWER)}
        there = _read_back(app, store, [acl for acl in missing if acl not in refused])
    if len(failed) == len(missing) and there.isdisjoint(missing):
        raise next(iter(failed.values()))

    def outcome(each: RightJudgement) -> str:
        acl = acl_of(each.right, each.principal)
        if each.verdict is not RightVerdict.MISSING:
            return "kept"
        return "created" if acl in there else "failed" if acl in refused else "unconfirmed"

    return _apply_report(app, plan, ACLS_APPLY_RESULT, outcome, refused)


def _read_back(app: App, store: AclClient, wanted: Sequence[Acl]) -> set[Acl]:
    """Asks until all of `wanted` are there; what can't be asked any more counts as not there, never as an error."""
    there = set[Acl]()
    try:
        for _ in app.deadline.rounds(_POLL_S):
            there = set(store.describe())
            if there.issuperset(wanted):
                return there
        raise app.deadline.passed("reading the ACLs back")
    except EosctlError as exc:
        app.on_event(Event(exc.message, warning=True))
    return there


def _apply_report(
    app: App,
    plan: AclPlan,
    kind: Kind,
    outcome: Callable[[RightJudgement], str],
    refused: Mapping[Acl, EosctlError] | None = None,
) -> Report:
    """The plan, or the result: with `refused`, what stands against an ACL is in its row."""
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
