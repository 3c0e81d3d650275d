"""doctor's checks of the Kafka cluster and its versions, and `doctor --for streams|flink`. Reads only.

`--for` checks transactional applications other than connectors.

The cluster's checks are of the versions that brokers and workers report: known bugs that transactions meet, and a
transaction.version that is behind; and of the brokers' disks: log directories that failed or are nearly full.

The known bugs, their versions, symptoms and remedies are data. Each number, and the release that fixed it, was looked
up: the commit in Kafka's repository and the tags that contain it, or its pull request and the branches that it was
picked to. What could not be looked up is not here. KAFKA-20090's pull requests (#21469 and #21506, February 2026) name
no release: the fix was seen in the classes of 4.3.1, and 4.3 is the first branch that was made after them. That of
KAFKA-19690 was seen in those of 3.9.2, that of KAFKA-18073 (#18146) in those of 4.0.0, and its lack in those of 3.5.1
and 3.9.2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from eosctl.acls.check import judge_acls
from eosctl.app import App
from eosctl.checks import codes
from eosctl.checks.causes import KAFKA
from eosctl.checks.group.rules import (
    hanging_findings,
    problem_findings,
    transaction_api_findings,
    transaction_topic_findings,
)
from eosctl.checks.ignored import IgnoredFinding, split_ignored
from eosctl.checks.report import CheckResults, checks_report
from eosctl.checks.visit import BROKER_PATIENCE_S
from eosctl.core.acls.lines import AclRequest
from eosctl.core.brokers import APPLICATION_APIS, SOURCE_APIS, KnownBrokers, shortage_of
from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.core.records import KnownBounds, LogDir
from eosctl.core.transaction_log import TOPIC as TRANSACTION_LOG
from eosctl.core.versions import (
    TRANSACTION_VERSION,
    BrokerFeatures,
    Version,
    describe_transaction_version,
    kafka_version,
    meaning_of,
    release_of,
    transaction_version,
)
from eosctl.errors import EosctlError, ExitCode, InterruptedByUserError, UnauthorizedError, UsageError
from eosctl.foreign import shell_word
from eosctl.group.observed import GroupObservation
from eosctl.observation.connectors.commit_age import fold_alike
from eosctl.report import Report, plain
from eosctl.txn import codes as txn_codes
from eosctl.txn.applications.report import ApplicationsRequest, list_applications
from eosctl.txn.applications.rows import ApplicationRow
from eosctl.txn.owners import NOT_CHECKED
from eosctl.txn.partitions import find_hanging_transactions
from eosctl.txn.rows import HangingRow, HangingSummary

Part = Literal["broker", "worker"]


class KnownBug(Struct, frozen=True):
    """A bug of releases from `since` on, up to but without `until`; `fixed_in` names patch releases, too.

    `of_streams`: only Kafka Streams runs into it.
    """

    number: str
    part: Part
    since: Version
    until: Version
    fixed_in: str
    symptom: str
    remedy: str
    of_streams: bool = False


KNOWN_BUGS: tuple[KnownBug, ...] = (
    KnownBug(
        "KAFKA-14402", "broker", (0, 11), (3, 6), "3.6.0 (KIP-890, part 1)",
        "a write that comes after its transaction has ended begins one that no coordinator knows: it hangs, and "
        "readers of committed records wait behind it for ever",
        "`eosctl txn hanging` finds them; each is ended on all of its partitions, with `eosctl txn complete` where its "
        "coordinator has committed it, else with `eosctl txn abort`",
    ),
    KnownBug(
        "KAFKA-15653", "broker", (3, 6), (3, 7), "3.6.1",
        "transactional writes of compressed records fail with InvalidRecordException or UnknownServerException, when "
        "the broker checks them with their coordinator",
        "set transaction.partition.verification.enable=false until then",
    ),
    KnownBug(
        "KAFKA-16386", "broker", (3, 6), (3, 8), "3.7.1 and 3.8.0",
        "producers fail with NetworkException while a coordinator does not take connections: older clients do not "
        "retry it",
        "restart the producers that failed",
    ),
    KnownBug(
        "KAFKA-19690", "broker", (3, 6), (4, 2), "4.2.0, 3.9.2, and the newest patch release of 4.1",
        "a Streams thread that stalled for longer than its transaction.timeout.ms dies of InvalidTxnStateException, "
        "where InvalidProducerEpochException would have let it go on",
        "restart the thread, or raise transaction.timeout.ms above the longest pause",
        of_streams=True,
    ),
    KnownBug(
        "KAFKA-19367", "broker", (4, 0), (4, 1), "4.0.1",
        "with transaction.version 2 fencing an open transaction raises the epoch twice: at the highest epoch the "
        "coordinator throws, and the id can't be used",
        "fence an id no more often than needed: each time spends epochs",
    ),
    KnownBug(
        "KAFKA-20090", "broker", (4, 0), (4, 3), "4.3.1 or newer",
        "with transaction.version 2 a transaction that times out at the highest epoch stays Ongoing for ever",
        "`eosctl txn list --state Ongoing` shows it; a new transactional id goes on",
    ),
    KnownBug(
        "KAFKA-15059", "worker", (3, 3), (3, 6), "3.6.0",
        "tasks FAIL with \"Failed to perform zombie fencing\" while a rebalance is pending",
        "restart the failed tasks: `eosctl connectors restart C`",
    ),
    KnownBug(
        "KAFKA-16570", "worker", (3, 3), (3, 8), "3.7.1 and 3.8.0",
        "fencing reports an unexpected error (CONCURRENT_TRANSACTIONS) though it worked, and the tasks FAIL",
        "restart the failed tasks; `eosctl fence` retries it",
    ),
    KnownBug(
        "KAFKA-16047", "worker", (3, 3), (3, 8), "3.7.1 and 3.8.0",
        "fencing times out where replicas are slow: it asks for a transaction timeout of 1 ms",
        "`eosctl fence --connector C`, then restart the failed tasks",
    ),
    KnownBug(
        "KAFKA-18073", "worker", (3, 3), (4, 0), "4.0.0",
        "a record at which a converter or transformation throws a RetriableException, say of a schema registry that is "
        "away, is dropped without a word, though errors.tolerance is none; the offset behind it is committed",
        "set errors.retry.timeout of connectors above the longest outage; `eosctl audit --connector C --sequence "
        "FIELD` finds what is missing",
    ),
    KnownBug(
        "KAFKA-15018", "worker", (3, 3), (3, 8), "3.8.0",
        "a connector with an offsets topic of its own reads an old offset after a reset: the global topic keeps it",
        "`eosctl offsets lint` shows what is left, `eosctl offsets reset` deletes it in both",
    ),
)  # fmt: skip


NEARLY_FULL = 0.05
"""The share of a volume that is left: in proportion to it, so that a small one is not nearly full for ever."""


def log_dir_findings(log_dirs: Mapping[int, Sequence[LogDir]]) -> Iterator[Finding]:
    """Yield the directories that brokers took out of use, and those on volumes with little room left."""
    for broker, found in sorted(log_dirs.items()):
        for each in found:
            usable, total = each.usable_bytes, each.total_bytes
            if each.is_offline:
                yield _failed(broker, each)
            elif usable is not None and total is not None and usable < NEARLY_FULL * total:
                yield _nearly_full(broker, each.path, usable=usable, total=total)


def _failed(broker: int, log_dir: LogDir) -> Finding:
    return Finding(
        codes.LOG_DIR_FAILED, ERROR, f"broker {broker}",
        f"broker {broker} can't use its log directory {log_dir.path} (KAFKA_STORAGE_ERROR): the disk failed or is full",
        "See the broker's log, which `eosctl explain` reads. Free space on the disk or replace it, then restart the "
        "broker; delete no file in the directory by hand.",
        {"broker": broker, "log_dir": log_dir.path},
    )  # fmt: skip


def _nearly_full(broker: int, path: str, *, usable: int, total: int) -> Finding:
    return Finding(
        codes.LOG_DIR_NEARLY_FULL, WARNING, f"broker {broker}",
        f"the disk of log directory {path} of broker {broker} has {_size(usable)} of {_size(total)} left "
        f"({100 * usable / total:.1f} percent): a broker stops using a directory that it can't write to, and ends when "
        "it has no other",
        "Free space on the disk (delete no file in the directory by hand), move replicas to other brokers "
        "(kafka-reassign-partitions.sh), or lower retention.ms or retention.bytes of large topics.",
        {"broker": broker, "log_dir": path, "usable_bytes": usable, "total_bytes": total},
    )  # fmt: skip


def _size(count: int) -> str:
    """Format bytes in the largest binary unit that fits: `1.5 GiB`."""
    units = [(4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")]
    return next((f"{count / 1024**power:,.1f} {unit}" for power, unit in units if count >= 1024**power), f"{count} B")


def bugs_of(part: Part, versions: Collection[Version], *, with_streams: bool = False) -> list[KnownBug]:
    """Return the known bugs that any of these releases has; a patch release may have the fix already.

    Those that only Kafka Streams runs into are left out, unless `with_streams`.
    """
    return [
        bug
        for bug in KNOWN_BUGS
        if bug.part == part
        and (with_streams or not bug.of_streams)
        and any(bug.since <= version < bug.until for version in versions)
    ]


def bug_findings(part: Part, versions: Collection[Version], *, with_streams: bool = False) -> Iterator[Finding]:
    """Yield a finding for each bug: the affected releases, its symptom, and a remedy until it is fixed."""
    for bug in bugs_of(part, versions, with_streams=with_streams):
        having = sorted({version for version in versions if bug.since <= version < bug.until})
        named = ", ".join(f"{major}.{minor}" for major, minor in having)
        yield Finding(
            codes.KNOWN_BUG, INFO, bug.number,
            f"{bug.number} ({part}s of Kafka {named}, unless of a release that has the fix): {bug.symptom}",
            f"Upgrade to {bug.fixed_in}. Until then: {bug.remedy}.",
            {"part": part, "versions": named, "fixed_in": bug.fixed_in},
        )  # fmt: skip


def broker_releases(features: Mapping[int, BrokerFeatures]) -> set[Version]:
    """Return the releases of the brokers, as far as their features show them."""
    return {release for each in features.values() if (release := release_of(each)) is not None}


def transaction_version_findings(features: Mapping[int, BrokerFeatures]) -> Iterator[Finding]:
    """Yield a finding if all brokers support a higher level than the one in use, which an upgrade leaves as it was."""
    if not features:
        return
    used = transaction_version(features)
    possible = min(each.supported.get(TRANSACTION_VERSION, 0) for each in features.values())
    if used < possible:
        level = f"{TRANSACTION_VERSION}={possible}"
        yield Finding(
            codes.TRANSACTION_VERSION_BEHIND, INFO, TRANSACTION_VERSION,
            f"{describe_transaction_version(used)}; the brokers can have {possible}: {meaning_of(possible)}",
            f"kafka-features.sh --bootstrap-server HOST:PORT upgrade --feature {shell_word(level)}",
            {"used": used, "possible": possible},
        )  # fmt: skip


def worker_findings(group: GroupObservation) -> Iterator[Finding]:
    """Yield the bugs of the workers' versions; a worker that does not report its version is left out."""
    versions = {version for each in group.members if (version := kafka_version(each.version))}
    return bug_findings("worker", versions)


def broker_findings(app: App, *, product: str | None = None, silent: Collection[int] = ()) -> Iterator[Finding]:
    """Yield disks that failed or are nearly full, bugs of the brokers' releases, and a transaction.version behind.

    For the applications of a `product` yield also the transactional APIs that brokers lack; bugs that only Kafka
    Streams runs into are left out for all others. Of brokers that can't be asked, or do not report their disks, nothing
    is claimed; that they can't is what other checks say. Where some are `silent` the others are asked for their disks
    alone.
    """
    brokers, log_dirs = _seen(app, silent)
    yield from log_dir_findings(log_dirs)
    yield from bug_findings("broker", broker_releases(brokers.known), with_streams=product == "streams")
    yield from transaction_version_findings(brokers.known)
    if product is not None:
        apis = APPLICATION_APIS if product == "streams" else SOURCE_APIS
        yield from transaction_api_findings(shortage_of(brokers, apis, _cluster_id(app), app.target.client))


def _seen(app: App, silent: Collection[int]) -> tuple[KnownBrokers, Mapping[int, Sequence[LogDir]]]:
    brokers = KnownBrokers({})
    log_dirs: Mapping[int, Sequence[LogDir]] = {}
    try:
        with app.transactions() as admin:
            if not silent:
                brokers = admin.features()
            log_dirs = admin.log_dirs(patience_s=BROKER_PATIENCE_S, besides=silent)
    except InterruptedByUserError:
        raise
    except EosctlError:
        pass
    return brokers, log_dirs


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
        KAFKA: lambda: broker_findings(app, product=wanted.product),
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


def _transactions(app: App) -> _Found:
    report = find_hanging_transactions(app, None)
    if not report.summary_of(HangingSummary).partitions:  # brokers leave out what one may not see, without a word
        raise UnauthorizedError("no topic can be seen, so no transaction either", hint="Grant DESCRIBE on the topics.")
    yield from hanging_findings(plain(row) for row in report.rows_of(HangingRow) if row.reason != NOT_CHECKED)
    yield from problem_findings("transactions", report.problems)


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


def to_check(product: str | None, applications: Sequence[str], principals: Sequence[str]) -> ApplicationsToCheck | None:
    """Return the named applications; None without --for. Raises UsageError for options that need --for."""
    if product is None:
        if applications or principals:
            raise UsageError("--application and --principal go with --for", hint="For example --for streams.")
        return None
    return ApplicationsToCheck(product, tuple(applications), tuple(principals))
