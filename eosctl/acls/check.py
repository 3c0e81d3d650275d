"""Compares the needed rights with the cluster's ACLs. Reads only; acls/apply.py adds the missing ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import asdict

from eosctl.acls import codes
from eosctl.acls.rows import (
    ACLS_CHECK,
    ACLS_GENERATE,
    ACLS_SCRIPT,
    CheckedPart,
    CheckSummary,
    JudgedRow,
    RightRow,
    RightsData,
    RightsSummary,
    ScriptData,
)
from eosctl.acls.rules import AclIndex, RightJudgement, RightVerdict, acl_of, is_certain, judge
from eosctl.acls.wanted import WantedRights, gather_wanted
from eosctl.app import App
from eosctl.core.acls.lines import Acl, AclRequest, kafka_acls_lines, terraform_yaml
from eosctl.core.acls.table import Right
from eosctl.core.configs.fold import ConnectorState
from eosctl.core.findings import ERROR, INFO, SEVERITIES, WARNING, Finding
from eosctl.errors import EosctlError, UnauthorizedError, UnsupportedError
from eosctl.foreign import Lines
from eosctl.output.rows import finding_row, unseen_parts
from eosctl.report import Problem, Report, check_exit_code, plain

SUPER_USERS, OPEN_TO_ALL = "super.users", "allow.everyone.if.no.acl.found"
_CODES = {
    RightVerdict.MISSING: codes.ACL_MISSING,
    RightVerdict.DENIED: codes.ACL_DENIED,
    RightVerdict.ALLOWED_TO_HOSTS: codes.ACL_FOR_SOME_HOSTS,
    RightVerdict.DENIED_TO_HOSTS: codes.ACL_DENIED_TO_HOSTS,
}


_LACKING = {
    RightVerdict.MISSING: "no ACL allows {}",
    RightVerdict.DENIED: "an ACL denies {}",
    RightVerdict.ALLOWED_TO_HOSTS: "some hosts only are allowed {}",
    RightVerdict.DENIED_TO_HOSTS: "some hosts are denied {}",
}


def generate_acls(app: App, request: AclRequest, *, script: str | None = None) -> Report:
    """Return the needed rights as rows; `script` (`kafka-acls` or `terraform`) adds them as text for that tool.

    A role without a principal is `User:<role>` in scripts.
    """
    wanted = gather_wanted(app, request, look=True)
    named = (acl_of(right, wanted.principals.get(right.role, f"User:<{right.role}>")) for right in wanted.rights)
    acls = list(dict.fromkeys(named))  # two roles of one principal may need the same
    return Report(
        kind=ACLS_SCRIPT if script else ACLS_GENERATE,
        rows=[right_row(right, wanted.principals.get(right.role)) for right in wanted.rights],
        summary=RightsSummary(rights=len(wanted.rights)),
        data=ScriptData(script=Lines.of(*_SCRIPTS[script](app, acls))) if script else ScriptData(),
        target={"kafka_cluster_id": None, "group_id": app.target.group_id},
        problems=wanted.problems,
    )


_SCRIPTS: Mapping[str, Callable[[App, Sequence[Acl]], list[str]]] = {
    "kafka-acls": lambda app, acls: kafka_acls_lines(acls, settings=app.target.client),
    "terraform": lambda _app, acls: terraform_yaml(acls),
}


class CheckedAcls(Struct, frozen=True):
    """The needed rights compared with the cluster's ACLs: a judgement per right, and findings, most severe first."""

    cluster_id: str
    judgements: Sequence[RightJudgement]
    findings: Sequence[Finding]
    problems: Sequence[Problem]


def check_acls(app: App, request: AclRequest, *, strict: bool = False) -> Report:
    """Report what `judge_acls` finds. Exits 3 on an error, with `strict` also on a warning; raises as `judge_acls`."""
    return _check_report(app, judge_acls(app, request), strict=strict)


def judge_acls(app: App, request: AclRequest, connectors: Mapping[str, ConnectorState] | None = None) -> CheckedAcls:
    """Compare the needed rights with the cluster's ACLs; add a finding per right that not every host is given.

    `connectors` are those of the config topic, if it has been read.
    Raises UnauthorizedError where the ACLs may not be described.
    """
    wanted = gather_wanted(app, request, look=True, named=True, connectors=connectors)
    wanted.require_principals()
    with app.acls() as store:
        cluster_id = store.cluster_id()
        try:
            acls = store.describe()
        except UnsupportedError as exc:
            return CheckedAcls(cluster_id, [], [_no_authorizer(exc)], wanted.problems)
    judgements, problems = judge_all(app, wanted, AclIndex(acls))
    findings = acl_findings(app, judgements)
    if any(finding.code == codes.ACL_MISSING for finding in findings):
        findings += _hidden_settings(app)
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return CheckedAcls(cluster_id, judgements, findings, [*wanted.problems, *problems])


def judge_all(
    app: App, wanted: WantedRights, acls: AclIndex, *, known_topics: Collection[str] = ()
) -> tuple[list[RightJudgement], list[Problem]]:
    """Judge each right that is needed now: a right to create a topic is not needed once the topic exists.

    A topic that may not be described is taken to exist, and is a problem; `known_topics` are not looked up.
    """
    topics = {right.name for right in wanted.rights if right.to_create and right.pattern_type == "LITERAL"}
    existing, unknown = _existing(app, sorted(topics.difference(known_topics)))
    not_to_create = {*known_topics, *existing, *unknown}
    judgements = [
        judge(right, wanted.principals[right.role], acls)
        for right in wanted.rights
        if not (right.to_create and right.name in not_to_create)
    ]
    return judgements, [_existence_unknown(unknown)] if unknown else []


def split_lacking(
    app: App, judgements: Sequence[RightJudgement], acls: AclIndex
) -> tuple[list[RightJudgement], list[RightJudgement]]:
    """Split the rights that are not granted into those certainly lacking and those that may be."""
    open_ones = [each for each in judgements if each.verdict is not RightVerdict.ALLOWED and not each.right.optional]
    if not open_ones:
        return [], []
    super_users, open_to_all = is_set(app, SUPER_USERS) != "no", is_set(app, OPEN_TO_ALL) != "no"
    lacking, unsure = list[RightJudgement](), list[RightJudgement]()
    for each in open_ones:
        certain = is_certain(each, acls, super_users=super_users, open_to_all=open_to_all)
        (lacking if certain else unsure).append(each)
    return lacking, unsure


def _existing(app: App, topics: Sequence[str]) -> tuple[set[str], list[str]]:
    """Return which of `topics` exist and which may not be described. Asks for all together, then one by one."""
    if not topics:
        return set(), []
    existing, unknown = set[str](), list[str]()
    with app.topics() as store:
        try:
            return set(store.describe(topics)), []
        except UnauthorizedError:
            for topic in topics:
                try:
                    existing |= set(store.describe([topic]))
                except UnauthorizedError:
                    unknown.append(topic)
    return existing, unknown


def _existence_unknown(topics: Sequence[str]) -> Problem:
    return Problem(
        codes.TOPICS_UNKNOWN,
        f"whether {', '.join(topics)} exist may not be known here; the right to create them is left out",
        hint="DESCRIBE on a topic is needed to check this.",
        unseen=True,
    )


def acl_findings(app: App, judgements: Sequence[RightJudgement]) -> list[Finding]:
    """Make a finding per principal and resource; operations with the same verdict are reported, and fixed, together."""
    alike: dict[tuple[object, ...], list[RightJudgement]] = {}
    for each in judgements:
        right = each.right
        key = (right.role, each.principal, right.resource, right.optional, each.verdict, each.because)
        if each.verdict is not RightVerdict.ALLOWED:
            alike.setdefault(key, []).append(each)
    return [_finding(app, group) for group in alike.values()]


def _finding(app: App, alike: Sequence[RightJudgement]) -> Finding:
    first, operations = alike[0], [each.right.operation for each in alike]
    right, verdict, because = first.right, first.verdict, first.because
    what = f"{', '.join(operations)} on {right.resource}"
    denied = verdict in (RightVerdict.DENIED, RightVerdict.DENIED_TO_HOSTS)
    acls = because if denied else [acl_of(each.right, each.principal) for each in alike]
    certain = verdict in (RightVerdict.MISSING, RightVerdict.DENIED)
    return Finding(
        code=_CODES[verdict],
        severity=ERROR if certain and not right.optional else WARNING,
        subject=f"{right.role} {first.principal}",
        message=f"{_LACKING[verdict].format(what)}: {right.note}",
        evidence=plain(judged_row(first)) | {"operations": operations},
        fix=Lines.of(*kafka_acls_lines(acls, settings=app.target.client, remove=denied)),
    )


def _no_authorizer(error: UnsupportedError) -> Finding:
    return Finding(
        code=codes.NO_AUTHORIZER,
        severity=INFO,
        subject="brokers",
        message="the brokers have no authorizer: every client may do everything, and there are no ACLs",
        evidence={"answer": error.message},
        fix="nothing has to be done; to have ACLs, set authorizer.class.name in every server.properties",
    )


def _hidden_settings(app: App) -> list[Finding]:
    """Return a finding if a broker setting may give a right without an ACL. Kafka hides the values of both settings."""
    settings = {name: is_set(app, name) for name in (SUPER_USERS, OPEN_TO_ALL)}
    if not any(state != "no" for state in settings.values()):
        return []
    return [
        Finding(
            code=codes.SUPER_USERS_UNKNOWN,
            severity=INFO,
            subject="brokers",
            message="a super user needs no ACL, and who is one can't be read from the brokers",
            evidence={"set_on_the_brokers": settings},
            fix="look at super.users and allow.everyone.if.no.acl.found in server.properties",
        )
    ]


def is_set(app: App, setting: str) -> str:
    """Return whether the brokers have the setting: yes, no, or unknown; they do not report the value of these two."""
    try:
        with app.topics() as store:
            return "yes" if store.broker_settings(setting) else "no"
    except EosctlError:
        return "unknown"


def _check_report(app: App, checked: CheckedAcls, *, strict: bool) -> Report:
    verdicts = [each.verdict for each in checked.judgements]
    return Report(
        kind=ACLS_CHECK,
        rows=[finding_row(finding) for finding in checked.findings],
        summary=CheckSummary(
            rights=len(verdicts), **{verdict.value: verdicts.count(verdict) for verdict in RightVerdict}
        ),
        data=RightsData(
            rights=[CheckedPart(**asdict(judged_row(each)), verdict=each.verdict) for each in checked.judgements],
            unseen=unseen_parts(checked.findings, checked.problems),
        ),
        target={"kafka_cluster_id": checked.cluster_id, "group_id": app.target.group_id},
        problems=checked.problems,
        exit_code=check_exit_code(checked.findings, checked.problems, strict=strict),
    )


def judged_row(judgement: RightJudgement) -> JudgedRow:
    """Make the row of a principal's right and of the ACLs that decided on it."""
    right = right_row(judgement.right, judgement.principal)
    return JudgedRow(**asdict(right), acls=[str(acl) for acl in judgement.because])


def right_row(right: Right, principal: str | None) -> RightRow:
    """Make the row of a principal's right."""
    return RightRow(
        role=right.role,
        principal=principal,
        operation=right.operation,
        resource_type=right.resource_type,
        resource_name=right.name,
        pattern_type=right.pattern_type,
        permission="ALLOW",
        when=right.when,
        since=right.since,
        optional=right.optional,
        only_to_create=right.to_create,
        note=right.note,
    )
