"""`doctor`: every check of the project in one run, most severe findings first. Reads only.

Each check runs by itself. One that can't run is a finding too, with the reason: silence would read as health.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.acls import codes as acl_codes
from eosctl.acls.check import judge_acls
from eosctl.app import App
from eosctl.checks import codes
from eosctl.checks.causes import KAFKA, kafka_findings, kafka_unreachable, under_causes
from eosctl.checks.cluster import broker_findings, spent_epoch_findings
from eosctl.checks.group.members import member_findings, needless_codes, plain_findings, uses_exactly_once
from eosctl.checks.group.repeats import find_repeats, find_shared_offsets, under_repeats
from eosctl.checks.group.rules import (
    gate_finding,
    hanging_findings,
    problem_findings,
    status_topic_findings,
    topic_findings,
    transaction_api_findings,
    transaction_topic_findings,
    unread_findings,
)
from eosctl.checks.group.state import expectation_findings, find_without_tasks, with_proofs
from eosctl.checks.ignored import IgnoredFinding, split_ignored
from eosctl.checks.report import CheckResults, doctor_report
from eosctl.checks.standstill import (
    at_rest,
    find_held_topics,
    find_unended,
    long_transactions,
    standstill_findings,
    under_unended,
)
from eosctl.checks.two_clusters import findings_on_two_clusters
from eosctl.checks.unfinished import unfinished_work
from eosctl.checks.visit import Visit, status_findings
from eosctl.connectors.codes import OTHER_CLUSTER
from eosctl.connectors.look import failure_findings
from eosctl.core.acls.lines import AclRequest
from eosctl.core.brokers import SOURCE_APIS, shortage_of
from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.core.records import KnownBounds, TopicDescription
from eosctl.core.transaction_log import TOPIC as TRANSACTION_LOG
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Event
from eosctl.errors import EosctlError, InterruptedByUserError, UnauthorizedError, UsageError
from eosctl.foreign import Lines
from eosctl.group.observation.rules import Observation
from eosctl.move.sides import not_to_be_resumed
from eosctl.observation.connectors.commit_age import by_worker, fold_alike
from eosctl.observation.connectors.rules import connector_findings, group_findings
from eosctl.offsets.lint.lint import offset_findings
from eosctl.offsets.lint.past_writes import with_past_fences
from eosctl.ports import TopicReader
from eosctl.report import Problem, Report, plain
from eosctl.task_counts.gather import find_task_count_problems
from eosctl.txn import codes as txn_codes
from eosctl.txn.owners import NOT_CHECKED
from eosctl.txn.partitions import find_hanging_transactions
from eosctl.txn.rows import HangingRow, HangingSummary

_Found = Iterable[Finding]


def _unfinished(visit: Visit) -> _Found:
    seen = visit.observation()
    if seen.kafka_cluster_id is None:  # the journals are of clusters
        return []
    known = seen.connectors or ()
    return list(unfinished_work(visit.app, seen.kafka_cluster_id, connectors=known, config=seen.config_state))


def _kafka(visit: Visit) -> _Found:
    """Check the brokers: those that do not answer, waited for once, and the reports of the others."""
    if visit.app.target.client is None:
        return []
    silent = visit.silent_brokers()
    return [*kafka_findings(silent), *broker_findings(visit.app, silent=silent)]


def _gates(visit: Visit) -> _Found:
    own, _following = visit.gates()
    subject = visit.app.target.group_id or "group"
    amiss = [finding for gate in own for finding in gate_finding(gate, subject)]
    seen = visit.observation()
    return [*expectation_findings(seen, visit.expected), *amiss, *unread_findings(seen), *_brokers(visit, seen)]


def _brokers(visit: Visit, seen: Observation) -> _Found:
    """Yield brokers without transactions: an error where the group uses them, else what it could not be moved to."""
    if seen.brokers is None:
        return ()
    in_use = {worker.mode for worker in seen.workers} & {Mode.ENABLED, Mode.PREPARING}
    shortage = shortage_of(seen.brokers, SOURCE_APIS, seen.kafka_cluster_id, visit.app.target.client)
    return transaction_api_findings(shortage, severity=ERROR if in_use else INFO)


def _failures(visit: Visit) -> _Found:
    seen = visit.observation()
    found = with_proofs(failure_findings(seen.connectors or _no_connectors(visit)), seen)
    found = status_findings(visit.app, seen, visit.statuses(), found)
    again = find_repeats(visit.app, seen, visit.statuses())
    explained = with_past_fences(visit.app, under_repeats(again, found), seen.kafka_cluster_id)
    return [*explained, *find_without_tasks(visit.app, seen, visit.statuses())]


def _transactions(visit: Visit) -> _Found:
    report = find_hanging_transactions(visit.app, None)
    if not report.summary_of(HangingSummary).partitions:  # brokers leave out what one may not see, without a word
        raise UnauthorizedError("no topic can be seen, so no transaction either", hint="Grant DESCRIBE on the topics.")
    hanging = [row for row in report.rows_of(HangingRow) if row.reason != NOT_CHECKED]
    unended, unasked = find_unended(visit.app)
    held, untold = _held_topics(visit)
    problems = dict.fromkeys([*report.problems, *unasked, *untold])
    return [
        *hanging_findings(map(plain, hanging)),
        *under_unended(unended, held),
        *problem_findings("transactions", problems),
    ]


def _held_topics(visit: Visit) -> tuple[Sequence[Finding], Sequence[Problem]]:
    """Find held topics; none where the connectors can't be seen. Other checks report that, and hanging transactions."""
    seen = visit.seen()
    if seen is None:
        return (), ()
    try:
        return find_held_topics(visit.app, seen)
    except InterruptedByUserError:
        raise
    except EosctlError as exc:  # brokers before Kafka 3.0 list none
        return (), [Problem.of(exc)]


def _task_counts(visit: Visit) -> _Found:
    findings, problems = find_task_count_problems(visit.app)
    seen = visit.seen()
    needless = frozenset[str]() if seen is None else needless_codes(seen)
    found = [each for each in findings if each.code not in needless]
    return [*found, *problem_findings("task_counts", problems)]


def _uses(visit: Visit) -> bool:
    """Return whether the group uses exactly-once; True where that is not known."""
    seen = visit.seen()
    return seen is None or uses_exactly_once(seen)


def _connectors(visit: Visit) -> _Found:
    seen = visit.observation()
    connectors = seen.connectors or _no_connectors(visit)
    judge = connector_findings if uses_exactly_once(seen) else plain_findings
    found = by_worker(judge(seen, connectors), seen)
    return [
        *find_shared_offsets(visit.app, seen),
        *findings_on_two_clusters(visit.app, visit.others),
        *found,
        *long_transactions(seen),
        *spent_epoch_findings(visit.app, seen.epochs),
        *at_rest(
            seen, not_to_be_resumed(visit.app, seen.kafka_cluster_id, [each.name for each in seen.connectors or ()])
        ),
        *group_findings(seen),
    ]


def _no_connectors(visit: Visit) -> tuple[()]:
    seen = visit.observation()
    if seen.connectors is None and not visit.group().is_mirror_maker:
        raise EosctlError(seen.why_unseen("connectors"), hint="Give the URL of a worker with -u.")
    return ()


def _offsets(visit: Visit) -> _Found:
    """Check offsets. Offsets that are on another cluster, and were looked at there, cause no warning."""
    seen = visit.seen()
    read, state = (None, None) if seen is None else (seen.config_read, seen.config_state)
    versions = () if seen is None else (each.version for each in seen.workers)
    findings, problems = offset_findings(visit.app, read, state, versions)
    warned = [each for each in problems if each.is_unseen or each.code != OTHER_CLUSTER]
    return [*findings, *problem_findings("offsets", warned)]


def _topics(visit: Visit) -> _Found:
    target = visit.app.target
    status = target.status_topics()
    with visit.app.topics() as store:
        there = store.describe([target.config_topic, *sorted(status), TRANSACTION_LOG])
        found = list(topic_findings(there.values()))
        found += standstill_findings([*_offsets_topics(visit, known=there), *there.values()])
        found += [
            finding
            for name in sorted(status & there.keys())
            for finding in status_topic_findings(there[name], target.client)
        ]
        if TRANSACTION_LOG in there:
            log = there[TRANSACTION_LOG]
            return [*found, *transaction_topic_findings(log, _known_bounds(store, log))]
    unseen = Finding(
        codes.TRANSACTION_TOPIC_UNSEEN, INFO, TRANSACTION_LOG, f"topic {TRANSACTION_LOG} can't be seen",
        codes.TRANSACTION_TOPIC_UNSEEN.next,
    )  # fmt: skip
    return [*found, unseen] if _uses(visit) else found


def _offsets_topics(visit: Visit, *, known: Mapping[str, TopicDescription]) -> list[TopicDescription]:
    """Return the global offsets topic and the connectors' own, as far as they could be looked at."""
    seen = visit.seen()
    topics = (seen.topics or {}) if seen is not None else {}
    return [topic for name, topic in topics.items() if name not in known]


def _known_bounds(store: TopicReader, topic: TopicDescription) -> KnownBounds:
    """Return the topic's bounds, without asking where none of its partitions has a leader."""
    if any(each.leader is not None for each in topic.placements):
        return store.known_bounds(topic.name)
    return KnownBounds((), {each.partition: "no leader" for each in topic.placements})


def _acls(visit: Visit) -> _Found:
    """Check rights, only if the workers' files (-w) name the principals and the group may use exactly-once."""
    if not _uses(visit):
        return [_acls_not_checked("no worker is enabled", "`eosctl acls check --all` has what exactly-once takes.")]
    try:
        seen = visit.seen()
        configs = None if seen is None else seen.config_state
        checked = judge_acls(visit.app, AclRequest(every=True), None if configs is None else configs.connectors)
    except UsageError as exc:
        fix = "Give the worker's file (-w), if it names its user; else give acls check the user with --principal."
        return [_acls_not_checked(exc.message, fix)]
    return [*map(_with_grant, checked.findings), *problem_findings("acls", checked.problems)]


def _with_grant(finding: Finding) -> Finding:
    """Prefix the fix of a missing ACL with the one command that grants all that is missing."""
    if finding.code != acl_codes.ACL_MISSING:
        return finding
    return replace(finding, fix=Lines.of("`eosctl acls apply --all` grants it; with Kafka's own script:", finding.fix))


def _acls_not_checked(reason: str, fix: str) -> Finding:
    return Finding(codes.ACLS_NOT_CHECKED, INFO, "acls", f"rights are not checked: {reason}", fix)


class _Check(Struct, frozen=True):
    id: str
    run: Callable[[Visit], _Found]


# in the order in which a person would act: what stops all, what was left half-done, what stops the group, or tasks
CHECKS: tuple[_Check, ...] = (
    _Check(KAFKA, _kafka),
    _Check("unfinished", _unfinished),
    _Check("workers", member_findings),
    _Check("gates", _gates),
    _Check("transactions", _transactions),
    _Check("failures", _failures),
    _Check("task_counts", _task_counts),
    _Check("connectors", _connectors),
    _Check("offsets", _offsets),
    _Check("topics", _topics),
    _Check("acls", _acls),
)


def examine(
    app: App,
    *,
    strict: bool = False,
    validate: bool = True,
    expected: Mode | None = None,
    ignore: Sequence[IgnoredFinding] = (),
    profiles: Sequence[str] = (),
) -> Report:
    """Report the findings of every check; exits 3 on an error, with `strict` also on a warning or a check that failed.

    A worker in another mode than `expected` is an error. Source connectors are validated, unless not `validate`.
    Findings that `ignore` names are only counted.
    Without an error, it exits 7 when some checks could not run; when none could, as the first reason (2, 4 or 5).
    The groups of `profiles` are looked at for connectors that run there, too. Raises NotFoundError for a group that was
    never there, InputFileError for a profile that does not exist, UsageError if nothing was named.
    """
    if app.target.client is None and not app.target.connect_urls:
        app.target.require_group_id()
        app.target.require_client()  # nothing could be checked
    others = {profile: app.elsewhere(profile) for profile in profiles}
    diagnosis = diagnose(app, validate=validate, expected=expected, ignore=ignore, reads_plugins=True, others=others)
    return doctor_report(diagnosis.visit, diagnosis.results, strict=strict)


class Examination(Struct, frozen=True):
    """The findings of every check and the visit that they come from; `findings` are the counting ones, not folded."""

    visit: Visit
    results: CheckResults
    findings: Mapping[str, Sequence[Finding]]


def diagnose(
    app: App,
    *,
    validate: bool = True,
    expected: Mode | None = None,
    ignore: Sequence[IgnoredFinding] = (),
    reads_plugins: bool = False,
    others: Mapping[str, App] = {},
) -> Examination:
    """Run every check, as `examine` does, and fold consequences under their cause.

    Without `reads_plugins` no jars are read: the collector, which does not, runs this every few minutes. Raises
    NotFoundError for a group that was never there.
    """
    visit = Visit(app, validate=validate, expected=expected, reads_plugins=reads_plugins, others=others)
    findings, failed = _run(visit)
    grouped = under_causes(visit, findings, ignore)
    both = {check: split_ignored(found, ignore) for check, found in grouped.items()}
    counting = {check: found for check, (found, _accepted) in both.items()}
    accepted = {check: fold_alike(found) for check, (_counting, found) in both.items()}
    folded = {check: fold_alike(found) for check, found in counting.items()}
    return Examination(visit, CheckResults(folded, accepted, failed), counting)


def _run(visit: Visit) -> tuple[dict[str, Sequence[Finding]], dict[str, EosctlError]]:
    """Run each check, Kafka first; return the findings, and the errors of the checks that could not run."""
    findings: dict[str, Sequence[Finding]] = {}
    failed: dict[str, EosctlError] = {}
    for check in CHECKS:
        visit.app.on_event(Event("checking", len(findings), len(CHECKS), "checks"))
        visit.next_check()
        try:
            findings[check.id] = list(check.run(visit))
        except InterruptedByUserError:
            raise
        except EosctlError as exc:
            if check.id == KAFKA:
                visit.give_up(exc)
                return _without_kafka(visit.app, exc)
            failed[check.id], findings[check.id] = exc, [_not_checked(check.id, exc)]
        if check.id == KAFKA:
            visit.next_check()
            visit.require_group()
    return findings, failed


def _without_kafka(app: App, error: EosctlError) -> tuple[dict[str, Sequence[Finding]], dict[str, EosctlError]]:
    """Return one finding for all checks, as each would wait in vain for the same brokers."""
    servers = app.target.client.bootstrap_servers if app.target.client else ()
    every = [check.id for check in CHECKS]
    return {**dict.fromkeys(every, ()), KAFKA: [kafka_unreachable(error, servers)]}, dict.fromkeys(every, error)


def _not_checked(check: str, error: EosctlError) -> Finding:
    return Finding(
        txn_codes.NOT_CHECKED, WARNING, check, f"{check} could not be checked: {error.message}",
        error.hint or "Run again with -v to see why.", {"error": str(error.code)}, certain=False,
    )  # fmt: skip
