"""doctor's checks of the Kafka cluster, its versions and disks. Reads only.

The cluster's checks are of the versions that brokers and workers report: known bugs that transactions meet, and a
transaction.version that is behind; and of the brokers' disks: log directories that failed, and those with little or no
room left. A broker that can't write to a log directory takes it out of use, and ends when it has no other; it ends
again when it is started on the same full disk. Which room is left brokers report from Kafka 3.3 on (KIP-827).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from eosctl.app import App
from eosctl.checks import codes
from eosctl.checks.visit import BROKER_PATIENCE_S
from eosctl.core.acls.lines import grant_hint
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.findings import ERROR, INFO, WARNING, Finding
from eosctl.core.ids import TransactionalId
from eosctl.core.known_bugs import Part, bugs_of
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

NEARLY_FULL = 0.05
"""The share of a volume that is left: in proportion to it, so that a small one is not nearly full for ever."""
FULL_BYTES = 1 << 20
"""With less than this a batch may not fit any more (about the default of message.max.bytes)."""
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
    fits = "a batch may not fit any more; " if is_full else ""
    return Finding(
        codes.LOG_DIR_FULL if is_full else codes.LOG_DIR_NEARLY_FULL, ERROR if is_full else WARNING, f"broker {broker}",
        f"the disk of log directory {log_dir.path} of broker {broker} has {_size(usable)} of {_size(total)} left "
        f"({100 * usable / total:.1f} percent): {fits}a broker stops using a directory that it can't write to, and "
        "ends when it has no other",
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
