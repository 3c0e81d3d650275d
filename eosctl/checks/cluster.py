"""doctor's checks of the Kafka cluster, its versions and disks. Reads only.

The cluster's checks are of the versions that brokers and workers report: known bugs that transactions meet, and a
transaction.version that is behind; and of the brokers' disks: log directories that failed, and those with little or no
room left. A broker that can't write to a log directory takes it out of use, and ends when it has no other; it ends
again when it is started on the same full disk. Which room is left brokers report from Kafka 3.3 on (KIP-827).

The known bugs, their versions, symptoms and remedies are data. Each number, and the release that fixed it, was looked
up: the commit in Kafka's repository and the tags that contain it, or its pull request and the branches that it was
picked to. What could not be looked up is not here. KAFKA-20090's pull requests (#21469 and #21506, February 2026) name
no release: the fix was seen in the classes of 4.3.1, and 4.3 is the first branch that was made after them. That of
KAFKA-19690 was seen in those of 3.9.2, that of KAFKA-18073 (#18146) in those of 4.0.0, and its lack in those of 3.5.1
and 3.9.2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from eosctl.app import App
from eosctl.checks import codes
from eosctl.checks.visit import BROKER_PATIENCE_S
from eosctl.core.acls.lines import grant_hint
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.core.ids import TransactionalId
from eosctl.core.records import LogDir
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
from eosctl.core.wording import counted
from eosctl.errors import EosctlError, InterruptedByUserError, UnauthorizedError, UnsupportedError
from eosctl.foreign import shell_word
from eosctl.group.observed import GroupObservation
from eosctl.txn import codes as txn_codes
from eosctl.txn.unended import HIGHEST_EPOCH, NEARLY_SPENT_EPOCH, means_much

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
FULL_BYTES = 1 << 20
"""Less than this is no room: a batch may have so many bytes (the default of message.max.bytes)."""
_FREE = (
    "Free space on the disk (delete no file in the directory by hand), move replicas to other brokers "
    "(kafka-reassign-partitions.sh), or lower retention.ms or retention.bytes of large topics."
)

LogDirs = Mapping[int, Sequence[LogDir] | EosctlError]
"""The log directories of each broker, or why it did not report them."""


def find_full_disks(app: App, *, besides: Collection[int] = ()) -> Iterator[Finding]:
    """Ask every broker but those `besides` for its disks; yield what is wrong with them, and what is not known."""
    try:
        with app.transactions() as admin:
            log_dirs = admin.log_dirs(patience_s=BROKER_PATIENCE_S, besides=besides)
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        yield _unread("the brokers", exc, None)
    else:
        yield from log_dir_findings(log_dirs, app.target.client)


def log_dir_findings(log_dirs: LogDirs, settings: ClientSettings | None = None) -> Iterator[Finding]:
    """Yield failed and full directories, nearly full ones, and the brokers whose disks are not known."""
    unread: dict[str, dict[int, EosctlError]] = {}
    without_sizes = []
    for broker, found in sorted(log_dirs.items()):
        if isinstance(found, EosctlError):
            unread.setdefault(found.code, {})[broker] = found
            continue
        yield from (each for log_dir in found if (each := _finding(broker, log_dir)) is not None)
        if any(each.usable_bytes is None and not each.is_offline for each in found):
            without_sizes.append(broker)
    for alike in unread.values():
        yield _unread(_named(list(alike)), next(iter(alike.values())), settings)
    if without_sizes:
        yield _unknown(without_sizes)


def _finding(broker: int, log_dir: LogDir) -> Finding | None:
    usable, total = log_dir.usable_bytes, log_dir.total_bytes
    if log_dir.is_offline:
        return _failed(broker, log_dir.path)
    if usable is None or total is None or usable >= NEARLY_FULL * total:
        return None
    is_full = usable < FULL_BYTES
    means = (
        "the next write to it fails, and the broker takes the directory out of use, and ends when it has no other"
        if is_full
        else "a broker stops using a directory that it can't write to, and ends when it has no other"
    )
    return Finding(
        codes.LOG_DIR_FULL if is_full else codes.LOG_DIR_NEARLY_FULL, ERROR if is_full else WARNING, f"broker {broker}",
        f"the disk of log directory {log_dir.path} of broker {broker} has {_size(usable)} of {_size(total)} left "
        f"({100 * usable / total:.1f} percent): {means}",
        _FREE, {"broker": broker, "log_dir": log_dir.path, "usable_bytes": usable, "total_bytes": total},
    )  # fmt: skip


def _failed(broker: int, path: str) -> Finding:
    return Finding(
        codes.LOG_DIR_FAILED, ERROR, f"broker {broker}",
        f"broker {broker} can't use its log directory {path} (KAFKA_STORAGE_ERROR): the disk failed or is full, which "
        "of them only its log says",
        "See the broker's log, which `eosctl explain` reads. Free space on the disk or replace it, and only then "
        "restart the broker; delete no file in the directory by hand.",
        {"broker": broker, "log_dir": path},
    )  # fmt: skip


def _unread(brokers: str, why: EosctlError, settings: ClientSettings | None) -> Finding:
    """Return the finding that disks are not known; for information where no right and no wait would show them."""
    severity, fix = WARNING, why.hint or codes.LOG_DIRS_UNREAD.next
    if isinstance(why, UnauthorizedError):
        fix = grant_hint("DESCRIBE", "Cluster", ["kafka-cluster"], settings=settings)
    elif isinstance(why, UnsupportedError):
        severity, fix = INFO, codes.LOG_DIRS_UNREAD.next
    return Finding(
        codes.LOG_DIRS_UNREAD, severity, "disks",
        f"how full the disks of {brokers} are, and whether a log directory failed, is not known: {why.message}",
        fix, {"error": str(why.code)}, certain=False,
    )  # fmt: skip


def _unknown(brokers: Sequence[int]) -> Finding:
    do = "do" if brokers[1:] else "does"
    return Finding(
        codes.LOG_DIRS_UNREAD, INFO, "disks",
        f"how full the disks of {_named(brokers)} are is not known: {'they' if brokers[1:] else 'it'} {do} not report "
        "the room that is left, as brokers before Kafka 3.3",
        codes.LOG_DIRS_UNREAD.next, {"brokers": list(brokers)}, certain=False,
    )  # fmt: skip


def _named(brokers: Sequence[int]) -> str:
    shown = ", ".join(map(str, brokers[:10]))
    return f"{'brokers' if brokers[1:] else 'broker'} {shown}" + (
        f" and {counted(len(brokers) - 10, 'more broker')}" if brokers[10:] else ""
    )


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


def broker_findings(app: App, *, with_streams: bool = False, silent: Collection[int] = ()) -> Iterator[Finding]:
    """Yield what the brokers report of their disks, bugs of their releases, and a transaction.version behind.

    Bugs that only Kafka Streams runs into are left out, unless `with_streams`. Of releases that can't be asked for
    nothing is claimed. Where some brokers are `silent` the others are asked for their disks alone.
    """
    yield from find_full_disks(app, besides=silent)
    features = {} if silent else _features(app)
    yield from bug_findings("broker", broker_releases(features), with_streams=with_streams)
    yield from transaction_version_findings(features)


def spent_epoch_findings(app: App, epochs: Mapping[TransactionalId, int]) -> Iterator[Finding]:
    """Yield the ids whose epoch is nearly at its end, where that means something on these brokers."""
    late = {each: epoch for each, epoch in epochs.items() if epoch >= NEARLY_SPENT_EPOCH}
    features = _features(app) if late else {}
    level = transaction_version(features) if features else None
    releases = broker_releases(features)
    for each, epoch in sorted(late.items()):
        if means_much(epoch, releases, level):
            yield Finding(
                txn_codes.EPOCHS_NEARLY_SPENT, WARNING, each,
                f"the epoch of {each} is {epoch:,}; at {HIGHEST_EPOCH:,} its next InitProducerId gives it a new "
                f"producer id. {describe_transaction_version(level or 0)}",
                txn_codes.EPOCHS_NEARLY_SPENT.next,
                {"producer_epoch": epoch, "transaction_version": level},
            )  # fmt: skip


def _features(app: App) -> Mapping[int, BrokerFeatures]:
    try:
        with app.transactions() as admin:
            return admin.features().known
    except InterruptedByUserError:
        raise
    except EosctlError:
        return {}
