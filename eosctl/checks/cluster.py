"""doctor's checks of the Kafka cluster and its versions, and `doctor --for streams|flink`. Reads only.

`--for` checks transactional applications other than connectors.

The cluster's checks are of the versions that brokers and workers report: known bugs that transactions meet, and a
transaction.version that is behind; and of the brokers' disks: log directories that failed or are nearly full.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from eosctl.acls.check import judge_acls
from eosctl.app import App
from eosctl.checks import codes
from eosctl.checks.causes import KAFKA
from eosctl.checks.group.rules import hanging_findings, problem_findings, transaction_topic_findings
from eosctl.checks.ignored import IgnoredFinding, split_ignored
from eosctl.checks.report import CheckResults, checks_report
from eosctl.checks.visit import BROKER_PATIENCE_S
from eosctl.core.acls.lines import AclRequest
from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.core.known_bugs import Part, bugs_of
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


def bug_findings(
    part: Part, versions: Collection[Version], *, with_streams: bool = False, judged: Collection[str] = ()
) -> Iterator[Finding]:
    """Yield a finding for each bug: the affected releases, its symptom, and a remedy until it is fixed.

    `judged` are the parts that were seen by which other checks report some of the bugs; those are left out, and whether
    they strike is uncertain without.
    """
    for bug in bugs_of(part, versions, with_streams=with_streams):
        if bug.judged_by in judged:
            continue
        named = ", ".join(f"{major}.{minor}" for major, minor in sorted({each for each in versions if bug.has(each)}))
        unless = ", unless of a release that has the fix" if bug.fixed_in else ""
        yield Finding(
            codes.KNOWN_BUG, INFO, bug.number,
            f"{bug.number} ({part}s of Kafka {named}{unless}): {bug.symptom}",
            bug.cure,
            {"part": part, "versions": named, "fixed_in": bug.fixed_in or None, "source": bug.source},
            certain=not bug.judged_by,
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


def worker_findings(group: GroupObservation, judged: Collection[str] = ()) -> Iterator[Finding]:
    """Yield the bugs of the workers' versions; a worker that does not report its version is left out.

    `judged` as in `bug_findings`.
    """
    versions = {version for each in group.members if (version := kafka_version(each.version))}
    return bug_findings("worker", versions, judged=judged)


def broker_findings(app: App, *, with_streams: bool = False, silent: Collection[int] = ()) -> Iterator[Finding]:
    """Yield disks that failed or are nearly full, bugs of the brokers' releases, and a transaction.version behind.

    Bugs that only Kafka Streams runs into are left out, unless `with_streams`. Of brokers that can't be asked, or do
    not report their disks, nothing is claimed; that they can't is what other checks say. Where some are `silent` the
    others are asked for their disks alone.
    """
    features, log_dirs = _seen(app, silent)
    yield from log_dir_findings(log_dirs)
    yield from bug_findings("broker", broker_releases(features), with_streams=with_streams)
    yield from transaction_version_findings(features)


def _seen(app: App, silent: Collection[int]) -> tuple[Mapping[int, BrokerFeatures], Mapping[int, Sequence[LogDir]]]:
    features: Mapping[int, BrokerFeatures] = {}
    log_dirs: Mapping[int, Sequence[LogDir]] = {}
    try:
        with app.transactions() as admin:
            if not silent:
                features = admin.features()
            log_dirs = admin.log_dirs(patience_s=BROKER_PATIENCE_S, besides=silent)
    except InterruptedByUserError:
        raise
    except EosctlError:
        pass
    return features, log_dirs


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
        KAFKA: lambda: broker_findings(app, with_streams=wanted.product == "streams"),
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
