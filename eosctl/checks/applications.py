"""`doctor --for streams|flink`: the checks of transactional applications other than connectors. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.acls.check import judge_acls
from eosctl.app import App
from eosctl.checks import codes
from eosctl.checks.causes import KAFKA
from eosctl.checks.cluster import broker_findings
from eosctl.checks.group.rules import (
    hanging_findings,
    problem_findings,
    transaction_api_findings,
    transaction_topic_findings,
)
from eosctl.checks.ignored import IgnoredFinding, split_ignored
from eosctl.checks.report import CheckResults, checks_report
from eosctl.checks.standstill import find_unended
from eosctl.core.acls.lines import AclRequest
from eosctl.core.brokers import APPLICATION_APIS, SOURCE_APIS, shortage_of
from eosctl.core.findings import INFO, WARNING, Finding
from eosctl.core.ids import TransactionalId
from eosctl.core.records import KnownBounds
from eosctl.core.transaction_log import TOPIC as TRANSACTION_LOG
from eosctl.core.wording import counted
from eosctl.errors import EosctlError, ExitCode, InterruptedByUserError, UnauthorizedError, UsageError
from eosctl.foreign import arguments
from eosctl.observation.connectors.commit_age import fold_alike
from eosctl.report import Report, plain
from eosctl.txn import codes as txn_codes
from eosctl.txn.applications.report import ApplicationsRequest, list_applications
from eosctl.txn.applications.rows import ApplicationRow
from eosctl.txn.applications.rules import ClusterFacts, readings_of
from eosctl.txn.log import count_initialisations
from eosctl.txn.owners import NOT_CHECKED
from eosctl.txn.partitions import find_hanging_transactions
from eosctl.txn.rows import HangingRow, HangingSummary

_Found = Iterable[Finding]
_PRODUCTS = {"streams": {"kafka-streams"}, "flink": {"flink-sink", "flink-producer"}}


class ApplicationsToCheck(Struct, frozen=True):
    """The product (Kafka Streams or Flink), its applications (none: all that are recognised), and their principal."""

    product: str
    applications: tuple[str, ...] = ()
    principals: tuple[str, ...] = ()
    input_topics: tuple[str, ...] = ()
    output_topics: tuple[str, ...] = ()


def examine_applications(
    app: App, wanted: ApplicationsToCheck, *, strict: bool = False, ignore: Sequence[IgnoredFinding] = ()
) -> Report:
    """Report the findings of every check that applies without a Connect group; exits as `examine` does."""
    checks: dict[str, Callable[[], _Found]] = {
        KAFKA: lambda: _brokers(app, wanted.product),
        "transactions": lambda: _transactions(app),
        "applications": lambda: _applications(app, wanted),
        "topics": lambda: _transaction_topic(app),
        "acls": lambda: _acls(app, wanted),
    }
    findings: dict[str, Sequence[Finding]] = {}
    failed: dict[str, EosctlError] = {}
    for check, run in checks.items():
        try:
            findings[check] = list(run())
        except InterruptedByUserError:
            raise
        except EosctlError as error:
            failed[check] = error
            findings[check] = [_not_checked(check, error)]
    both = {check: split_ignored(found, ignore) for check, found in findings.items()}
    counting = {check: fold_alike(found) for check, (found, _ignored) in both.items()}
    accepted = {check: fold_alike(found) for check, (_counting, found) in both.items()}
    results = CheckResults(counting, accepted, failed)
    return checks_report(results, None, cluster_id=_cluster_id(app), group_id=app.target.group_id, strict=strict)


def _not_checked(check: str, error: EosctlError) -> Finding:
    return Finding(
        txn_codes.NOT_CHECKED, WARNING, check, error.message, error.hint or txn_codes.NOT_CHECKED.next, certain=False
    )


def _cluster_id(app: App) -> str | None:
    try:
        with app.transactions() as admin:
            return admin.cluster_id()
    except EosctlError:
        return None


def _brokers(app: App, product: str) -> _Found:
    yield from broker_findings(app, with_streams=product == "streams")
    apis = APPLICATION_APIS if product == "streams" else SOURCE_APIS
    with app.transactions() as admin:
        shortage = shortage_of(admin.features(), apis, admin.cluster_id(), app.target.client)
    yield from transaction_api_findings(shortage)


def _transactions(app: App) -> _Found:
    report = find_hanging_transactions(app, None)
    if not report.summary_of(HangingSummary).partitions:  # brokers leave out what one may not see, without a word
        raise UnauthorizedError("no topic can be seen, so no transaction either", hint="Grant DESCRIBE on the topics.")
    yield from hanging_findings(plain(row) for row in report.rows_of(HangingRow) if row.reason != NOT_CHECKED)
    unended, unasked = find_unended(app)
    yield from unended
    yield from problem_findings("transactions", dict.fromkeys([*report.problems, *unasked]))


def _applications(app: App, wanted: ApplicationsToCheck) -> _Found:
    """Yield the remarks of `txn applications` about the product's applications, ambiguous ones included."""
    report = list_applications(app, ApplicationsRequest(remember=False))
    rows = report.rows_of(ApplicationRow)
    of_product = [row for row in rows if _is_of(row, wanted)]
    yield from problem_findings(
        "applications", [each for each in report.problems if each.code not in txn_codes.REMARKS]
    )
    # without the ids of a coordinator nobody knows which applications there are
    seen = {row.application for row in of_product} if report.exit_code is ExitCode.OK else set(wanted.applications)
    for name in wanted.applications:
        if name not in seen:
            yield Finding(
                codes.APPLICATION_NOT_SEEN, INFO, name, f"no transactional id of {name} is known",
                codes.APPLICATION_NOT_SEEN.next,
            )  # fmt: skip
    by_code = {str(code): code for code in txn_codes.REMARKS}
    for row in of_product:
        for code in map(by_code.__getitem__, row.remarks):
            severity = INFO if code == txn_codes.AMBIGUOUS_IDS else WARNING
            evidence = {"ids": row.ids, "open": row.open, "shares_prefix_with": row.shares_prefix_with}
            name = row.application
            yield Finding(code, severity, name, f"{name}: {code.meaning}", code.next, evidence)
    yield from _initialised_often(app, wanted)


_LEAST_INITIALISED, _WINDOW_MS = 5, 600_000


def _initialised_often(app: App, wanted: ApplicationsToCheck) -> Iterator[Finding]:
    """Yield the applications with ids that are initialised again and again; Flink's are by every checkpoint."""
    if wanted.product == "flink":
        return
    try:
        with app.transactions() as admin:
            listed = [each.transactional_id for each in admin.list_transactions().found]
        of = {each: name for each in listed if (name := _name_in(each, wanted)) is not None}
        patient = replace(app, deadline=app.deadline.half(at_most_s=15.0))
        since_ms = app.clock.now_ms() - _WINDOW_MS
        counts = count_initialisations(patient, list(of), since_ms=since_ms) if of else {}
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        yield Finding(
            codes.INITIALISATIONS_UNREAD, INFO, "applications",
            f"how often producers were recreated is not known: {exc.message}", codes.INITIALISATIONS_UNREAD.next,
            certain=False,
        )  # fmt: skip
        return
    often = {each: count for each, count in counts.items() if count >= _LEAST_INITIALISED}
    for name in sorted({of[each] for each in often}):
        its = {each: count for each, count in often.items() if of[each] == name}
        most = max(its, key=lambda each: its[each])
        yield Finding(
            codes.INITIALISED_OFTEN, WARNING, name,
            f"{counted(len(its), 'transactional id')} of {name} {'was' if len(its) == 1 else 'were'} initialised "
            f"{_LEAST_INITIALISED} times or more in the last 10 minutes ({most}: {its[most]:,} times): its producers "
            "are recreated again and again, or two producers use one id in turn, which the coordinators' log does not "
            "tell apart",
            f"See the application's log: ProducerFencedException where two use an id. `eosctl txn log --all-records "
            f"{arguments(most)}` shows when.",
            {"ids": len(its), "most": most, "initialised": its[most]},
        )  # fmt: skip


def _name_in(transactional_id: TransactionalId, wanted: ApplicationsToCheck) -> str | None:
    """Return the application of the product that may have this id; None where it is none that is wanted."""
    names = [
        each.name
        for each in readings_of(transactional_id, ClusterFacts())
        if each.product in _PRODUCTS[wanted.product] and (not wanted.applications or each.name in wanted.applications)
    ]
    return names[0] if names else None


def _is_of(row: ApplicationRow, wanted: ApplicationsToCheck) -> bool:
    products = {each.product for each in row.could_be}
    named = not wanted.applications or row.application in wanted.applications
    return named and bool(products & _PRODUCTS[wanted.product])


def _transaction_topic(app: App) -> _Found:
    with app.topics() as store:
        topic = store.describe([TRANSACTION_LOG]).get(TRANSACTION_LOG)
        if topic is None:
            what = f"topic {TRANSACTION_LOG} can't be seen"
            next_step = codes.TRANSACTION_TOPIC_UNSEEN.next
            return [Finding(codes.TRANSACTION_TOPIC_UNSEEN, INFO, TRANSACTION_LOG, what, next_step)]
        bounds = KnownBounds((), {each.partition: "no leader" for each in topic.placements})
        if any(each.leader is not None for each in topic.placements):
            bounds = store.known_bounds(topic.name)
        return list(transaction_topic_findings(topic, bounds))


def _acls(app: App, wanted: ApplicationsToCheck) -> _Found:
    """Check rights, only if applications and their principal are named."""
    if not wanted.applications or not wanted.principals:
        fix = "Give --application and --principal; `eosctl acls check` takes their topics, too."
        return [Finding(codes.ACLS_NOT_CHECKED, INFO, "acls", "rights are not checked: nobody is named", fix)]
    request = AclRequest(
        product=wanted.product, applications=wanted.applications, principals=wanted.principals,
        input_topics=wanted.input_topics, output_topics=wanted.output_topics,
    )  # fmt: skip
    return judge_acls(app, request).findings


def to_check(
    product: str | None, applications: Sequence[str], principals: Sequence[str], *, profiles: Sequence[str] = ()
) -> ApplicationsToCheck | None:
    """Return the named applications; None without --for. Raises UsageError for options that do not go together."""
    if product is None:
        if applications or principals:
            raise UsageError("--application and --principal go with --for", hint="For example --for streams.")
        return None
    if profiles:
        raise UsageError("--with is about connectors, and --for about other applications", hint="Leave one out.")
    return ApplicationsToCheck(product, tuple(applications), tuple(principals))
