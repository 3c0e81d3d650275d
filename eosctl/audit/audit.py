"""`eosctl audit`: proves from its topics' logs whether a connector was exactly-once in a window. Reads only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.audit import codes
from eosctl.audit.log.ledger import SourcePartition
from eosctl.audit.log.tallies import PlaceTally, WrittenBy
from eosctl.audit.reading.gather import JUDGED, read_logs
from eosctl.audit.reading.places import compare_with_source
from eosctl.audit.rows import (
    AUDIT,
    AuditData,
    AuditedConnector,
    AuditRow,
    AuditSummary,
    SourcePartitionPart,
    TransactionsPart,
    Verdict,
    WindowPart,
    severity_of,
)
from eosctl.audit.rules import LogRead
from eosctl.audit.scope import UNKNOWN, AuditRequest, Scope, find_scope, former_connectors, identify, output_window
from eosctl.audit.value_checks import Fields, check_values, wanted_fields
from eosctl.audit.verdict import (
    KnownProducer,
    OwnerKind,
    findings,
    judge,
    known_producer,
    shared_source_partitions,
    with_causes,
)
from eosctl.core.configs.losses import not_in_the_log
from eosctl.core.ids import Owner, ProducerId, TransactionalId
from eosctl.core.offsets.records import OffsetKey, decode_key
from eosctl.core.records import Unseen, UnseenReason, Window
from eosctl.core.wording import counted
from eosctl.errors import DeadlineError, EosctlError, ExitCode, InterruptedByUserError
from eosctl.report import Problem, Report
from eosctl.state.pages import require_writable_page, with_page
from eosctl.txn.owners import owners_of_ids

_MOST_SOURCE_PARTITIONS = 1000
_EXIT_CODES = {
    Verdict.EXACTLY_ONCE: ExitCode.OK,
    Verdict.NOT_EXACTLY_ONCE: ExitCode.FINDINGS,
    Verdict.UNPROVEN: ExitCode.PARTIAL,
}


class Audited(Struct, frozen=True):
    """The result of an audit: the logs that were read, their producers, and the verdict."""

    scope: Scope
    read: LogRead
    producers: Sequence[KnownProducer]
    rows: Sequence[AuditRow]
    connector: AuditedConnector


def audit(app: App, request: AuditRequest) -> Report:
    """Report whether a connector was exactly-once. Exits 0 for exactly_once, 3 for not_exactly_once, 7 for unproven.

    Raises NotFoundError, RefusedError, UsageError, and what reading raises.
    """
    window = output_window(request, app.clock)
    if request.report is not None:
        require_writable_page(request.report)
    scope = find_scope(app, request)
    fields = wanted_fields(request, scope.config)
    with scope.app.transactions() as admin:
        cluster_id = admin.cluster_id()
    read = read_logs(scope, window, check_crcs=request.check_crcs, begin=request.begin, end=request.end)
    done, problems = audit_of(app, scope, window, read, fields, writes_alone=request.writes_alone)
    report = _report(app, request, done, problems, cluster_id=cluster_id)
    return report if request.report is None else _with_page(report, Path(request.report), done, app)


def audit_of(
    app: App, scope: Scope, window: Window, read: LogRead, fields: Fields, *, writes_alone: bool = False
) -> tuple[Audited, Sequence[Problem]]:
    """Judge the logs that were read, and return the problems of what could not be asked; `writes_alone` as in
    AuditRequest.
    """
    producers, problems = _producers(scope, read)
    writers = {} if writes_alone else producers
    more, unread, notes = _more_findings(app, scope, read, fields, producers, writers=writers)
    lacks = [*scope.lacks, *(each.message for each in unread)]
    done = _judged(scope, window, read, producers, more, lacks=lacks, fields=fields, notes=notes)
    return done, [*problems, *unread]


def _with_page(report: Report, path: Path, done: Audited, app: App) -> Report:
    """Write the page and return the report; without the file's name where it could not be written."""
    from eosctl.audit.page import page_lines

    where = {"Kafka cluster": str(report.target["kafka_cluster_id"]), "Connect group": app.target.group_id}
    paged = with_page(report, path, page_lines(done, where=where, made_ms=app.clock.now_ms()))
    return paged if paged is report else replace(paged, data=AuditData(connectors=[done.connector], file=None))


def _producers(scope: Scope, read: LogRead) -> tuple[dict[ProducerId, KnownProducer], list[Problem]]:
    """Identify the producers of the output topics; those that no broker can identify stay unknown."""
    written = dict(read.outputs.written)
    for producer_id in read.ledger.producers():
        written.setdefault(producer_id, WrittenBy(producer_id, is_transactional=True))
    identities = identify(scope.app, [each.producer_id for each in written.values() if each.is_transactional])
    doing = "whose the producers are"
    problems = [Problem(codes.NOT_PROVEN, f"{doing}: {why}") for why in identities.lacks]
    owners: Mapping[TransactionalId, Owner] = {}
    try:
        names = {each.transactional_id for each in identities.known.values()}
        owners = owners_of_ids(scope.app.with_whole_timeout(), names, connectors=scope.connectors)
    except EosctlError as exc:
        problems.append(Problem(codes.NOT_PROVEN, f"{doing}: {exc.message}", exc.hint))
    has_offsets = set(read.ledger.producers())
    former = frozenset[str]()
    unclear = {
        producer_id: each.transactional_id
        for producer_id, each in identities.known.items()
        if (owner := owners.get(each.transactional_id)) is None or owner.kind in ("other", "ambiguous")
    }
    try:
        former = former_connectors(scope, unclear, read.offsets_plan)
    except EosctlError as exc:
        problems.append(Problem(codes.NOT_PROVEN, f"{doing}: {exc.message}", exc.hint))
    found = {}
    for producer_id, each in sorted(written.items()):
        name, by = identities.known.get(producer_id, (None, UNKNOWN))
        found[producer_id] = known_producer(
            each, name, by, None if name is None else owners.get(name),
            connector=scope.connector, group_id=scope.app.target.group_id, has_offsets=producer_id in has_offsets,
            is_used_by_others=producer_id in has_offsets & read.outputs.without_offsets_records, former=former,
        )  # fmt: skip
    return found, problems


def _more_findings(
    app: App,
    scope: Scope,
    read: LogRead,
    fields: Fields,
    producers: Mapping[ProducerId, KnownProducer],
    *,
    writers: Mapping[ProducerId, KnownProducer],
) -> tuple[list[tuple[PlaceTally, str]], list[Problem], list[str]]:
    """Return findings from records, or from another cluster's logs; none once the deadline has passed.

    `writers` are the producers whose values may belong to another connector.
    """
    found: list[tuple[PlaceTally, str]] = []
    problems: list[Problem] = []
    notes: list[str] = []
    if read.ended_by is not None:
        return found, problems, notes
    try:
        checked = check_values(scope.app, read, fields, writers)
        found, problems, notes = checked.found, checked.problems, checked.notes
        own = frozenset(number for number, each in producers.items() if each.owner_kind is OwnerKind.OWN)
        copies, unread = compare_with_source(app.with_whole_timeout(), scope, read.outputs.mirror, own)
        found, problems = [*found, *copies], [*problems, *unread]
    except KeyboardInterrupt:
        read.ended_by = InterruptedByUserError(f"interrupted; {JUDGED}")
    except DeadlineError as exc:
        read.ended_by = DeadlineError(f"{exc.message}; {JUDGED}", hint=exc.hint)
    except EosctlError as exc:
        problems.append(Problem(codes.NOT_PROVEN, f"the records were not read: {exc.message}", exc.hint))
    return found, problems, notes


def _judged(
    scope: Scope,
    window: Window,
    read: LogRead,
    producers: dict[ProducerId, KnownProducer],
    more: Sequence[tuple[PlaceTally, str]],
    *,
    lacks: Sequence[str],
    fields: Fields,
    notes: Sequence[str],
) -> Audited:
    rows = findings(
        scope.connector, read.tallies, producers,
        planned_ms=read.planned_ms, timeout_ms=scope.transaction_timeout_ms,
        more=[*shared_source_partitions(read.sources.shared(read.ledger), producers), *more],
    )  # fmt: skip
    rows = with_causes(rows, scope.config, producers.values())
    gone = [f"topic {topic} does not exist any more" for topic in scope.gone]
    unseen = [*map(_unseen_text, read.unseen), *gone]
    unreadable = [each for each in (*read.unseen, *read.offsets_unseen) if each.reason is UnseenReason.UNREADABLE]
    ended = [] if read.ended_by is None else ["the reading ended early"]
    doubts = [*_undated(read), *_left_elsewhere(scope, read)]
    reasons = [*(each.detail for each in unreadable), *gone, *read.uncompared, *lacks, *doubts, *ended]
    verdict, why, unproven = judge(rows, list(producers.values()), read.outputs, lacks=reasons)
    own = [each.written for each in producers.values() if each.owner_kind is OwnerKind.OWN]
    connector = AuditedConnector(
        connector=scope.connector,
        topics=list(scope.topics),
        offsets_topics=list(scope.offsets_topics),
        window=_window(window, read, unseen),
        transactions=TransactionsPart(
            committed=sum(each.count("committed") for each in own),
            aborted=sum(each.count("aborted") for each in own),
            open=sum(each.open for each in own),
        ),
        records=sum(each.records for each in own),
        bytes=read.outputs.bytes,
        producers=[each.part() for each in producers.values() if each.written.places],
        source_partitions=_source_partitions(read, producers),
        source_partition_count=len(read.sources.of),
        verdict=verdict,
        why=why,
        unproven=list(unproven),
        values=list(notes),
        not_covered=not_in_the_log(
            scope.config,
            has_sequence=any(each.is_sequence for each in fields.checks),
            has_unique=not all(each.is_sequence for each in fields.checks),
        ),
    )
    return Audited(scope, read, list(producers.values()), rows, connector)


def _undated(read: LogRead) -> Iterator[str]:
    if read.undated:
        batches = counted(read.undated, "batch", "batches")
        yield f"no marker shows whether {batches} without a transaction were written in the window"
    if read.ledger.aborted_unkept:
        parts = counted(read.ledger.aborted_unkept, "aborted part")
        yield f"{parts} may belong to transactions that were committed elsewhere: there are too many to be judged"
    if read.sources.unkept:
        times = counted(read.sources.unkept, "time")
        yield f"{times} a producer came back to a source partition was not judged: there are too many"


def _left_elsewhere(scope: Scope, read: LogRead) -> Iterator[str]:
    """Yield source partitions with their last offset in a topic where no task looks for it.

    A task looks in the global topic, too, for offsets that its own topic lacks.
    """
    found = list(read.sources.of.values())
    in_use = {each.key: each for each in found if each.place[0] == scope.offsets_topics[0]}
    looked_at = {scope.offsets_topics[0], scope.app.target.offset_topic}
    count = len(
        {
            each.key
            for each in found
            if each.place[0] not in looked_at
            and not ((now := in_use.get(each.key)) is not None and now.is_certainly_after(each))
        }
    )
    if count:
        yield f"the last offsets of {counted(count, 'source partition')} are not in the offsets topic in use"


def _source_partitions(read: LogRead, producers: Mapping[ProducerId, KnownProducer]) -> list[SourcePartitionPart]:
    found = sorted(read.sources.of.values(), key=lambda each: (each.key, each.place))[:_MOST_SOURCE_PARTITIONS]
    return [_source_partition(each, producers.get(each.producer_id)) for each in found]


def _source_partition(each: SourcePartition, producer: KnownProducer | None) -> SourcePartitionPart:
    key = decode_key(each.key)
    partition = key.partition if isinstance(key, OffsetKey) else None
    return SourcePartitionPart(
        key=each.key.decode("utf-8", "backslashreplace"),
        source_partition=None if partition is None else dict(partition),
        commits=each.commits,
        transactional_id=None if producer is None else producer.transactional_id,
        producer_id=each.producer_id,
        producer_epoch=each.epoch,
        at_ms=each.at_ms if each.at_ms >= 0 else None,
    )


def _window(window: Window, read: LogRead, unseen: list[str]) -> WindowPart:
    """Return the window and the proven part of it, without what retention or compaction removed. Times are the
    markers'.
    """
    asked_ms = read.window.since_ms if read.begins_at_offsets else window.since_ms
    since_ms = -1 if asked_ms is None else asked_ms
    written = read.outputs.written.values()
    until_ms = max((each.ended_ms for each in written), default=-1)
    for fold in read.folds.values():
        since_ms = max(since_ms, fold.removed_ms)
        if fold.in_hole and not fold.is_empty:
            until_ms = -1  # of when what lies behind a hole is, nothing shows
    since_ms = max(since_ms, read.outputs.proven_since_ms)
    if read.outputs.unjudged:
        since_ms = max(since_ms, read.ledger.complete_since_ms)
    return WindowPart(
        since_ms=window.since_ms,
        until_ms=window.until_ms,
        proven_since_ms=since_ms if since_ms >= 0 else None,
        proven_until_ms=until_ms if until_ms >= 0 else None,
        unseen=unseen,
    )


def _unseen_text(unseen: Unseen) -> str:
    place = f"{unseen.topic}-{unseen.partition}"
    if unseen.reason is UnseenReason.UNREADABLE:
        return f"{place}: {unseen.detail}"
    why = {
        UnseenReason.REMOVED: "removed by retention or DeleteRecords",
        UnseenReason.COMPACTED: "removed by compaction",
    }[unseen.reason]
    if unseen.offsets is None:
        return f"{place}: records {why}"
    return f"{place}, offsets {unseen.first_offset} to {unseen.last_offset}: {counted(unseen.offsets, 'offset')} {why}"


def _report(app: App, request: AuditRequest, done: Audited, problems: Sequence[Problem], *, cluster_id: str) -> Report:
    connector, ended_by = done.connector, done.read.ended_by
    reported = [*done.scope.problems, *problems]
    exit_code = _EXIT_CODES[connector.verdict]
    if ended_by is not None:
        reported.append(Problem.of(ended_by))
        exit_code = ended_by.exit_code
    return Report(
        kind=AUDIT,
        rows=done.rows,
        summary=AuditSummary(
            verdict=connector.verdict,
            transactions=connector.transactions.committed,
            records=connector.records,
            bytes=connector.bytes,
            counts=dict(severity_of(done.rows)),
        ),
        data=AuditData(connectors=[connector], file=request.report),
        target={"kafka_cluster_id": cluster_id, "group_id": app.target.group_id},
        problems=reported,
        exit_code=exit_code,
    )
