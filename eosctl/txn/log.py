"""The operation `txn log`: the coordinators' own records in `__transaction_state`, if a coordinator does not answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace
from msgspec.structs import replace as with_other

from eosctl.app import App
from eosctl.core.ids import ProducerId, TransactionalId
from eosctl.core.records import Record, TopicRead
from eosctl.core.transaction_log import TOPIC, LoggedTransaction, coordinator_partition, decode_key, decode_value
from eosctl.core.transactions import TransactionState
from eosctl.core.wording import counted, rfc3339
from eosctl.errors import EosctlError, ExitCode, InterruptedByUserError, NotFoundError, ProtocolError
from eosctl.output.rows import Place
from eosctl.report import Problem, Report
from eosctl.txn import codes
from eosctl.txn.owners import NOT_CHECKED, owners_of_ids
from eosctl.txn.rows import TXN_LOG, LogRow, LogSummary
from eosctl.txn.rules import LogEntry, LogLook

_BAD_SHOWN = 10
_KEY_HEAD = 4
"""The bytes of a key before the id: version and length."""
_READ_S = 15.0
MOST_RECENT = 20_000
"""The offsets at the end of a partition that cover an id's last minutes, unless its coordinator is very busy."""


class LogRequest(Struct, frozen=True):
    """The selection of records: of some ids (none means all), the newest of each or, with `all_records`, every one."""

    transactional_ids: tuple[TransactionalId, ...] = ()
    prefix: str | None = None
    all_records: bool = False


def read_transaction_log(app: App, request: LogRequest) -> Report:
    """Report one row per record, in log order; what can't be read or decoded is a problem (exit 7), never skipped.

    A partition that can't be read has a row, too, with the state `not_checked`.

    Raises NotFoundError when there is no `__transaction_state`: nobody has used a transaction yet.
    """
    with app.topics() as store:
        cluster_id = store.cluster_id()
        read = store.read(TOPIC, isolation="read_uncommitted", newest_per_key=not request.all_records, partly=True)
    found: list[tuple[TransactionalId, LogRow]] = []
    problems: list[Problem] = []
    for record in read.records:
        try:
            row = _row(record, request)
        except ProtocolError as error:
            problems.append(Problem(codes.UNDECODABLE, f"{TOPIC}-{record.partition}@{record.offset}: {error.message}"))
        else:
            found += [(TransactionalId(str(row.transactional_id)), row)] if row is not None else []
    owners = owners_of_ids(app, sorted({name for name, _row in found}))
    rows = [replace(row, owner=owners[name]) for name, row in found]
    return Report(
        kind=TXN_LOG,
        rows=[*rows, *map(_unread_row, sorted(read.missing))],
        summary=LogSummary(records_read=read.records_read, rows=len(rows), undecodable=len(problems)),
        target={"kafka_cluster_id": cluster_id, "group_id": app.target.group_id},
        problems=[*_unread(read), *problems[:_BAD_SHOWN]],
        exit_code=ExitCode.PARTIAL if read.missing else _exit_code(rows, problems),
    )


def _unread(read: TopicRead) -> list[Problem]:
    if not read.missing:
        return []
    why = next(iter(read.missing.values()))
    numbers = ", ".join(map(str, sorted(read.missing)))
    some = f"{'partition' if len(read.missing) == 1 else 'partitions'} {numbers} of {TOPIC}"
    return [Problem(codes.NOT_CHECKED, f"{some} could not be read: {why}", "Bring the broker back, then run again.")]


def _exit_code(rows: Collection[LogRow], problems: Collection[Problem]) -> ExitCode:
    if not problems:
        return ExitCode.OK
    return ExitCode.PARTIAL if rows else ExitCode.FAILED


def _unread_row(partition: int) -> LogRow:
    """Return the row of a partition that could not be read."""
    return LogRow(partition=partition, state=NOT_CHECKED)


def _row(record: Record, request: LogRequest) -> LogRow | None:
    """Return the row of a record, without its id's owner; return None if not requested; raise ProtocolError."""
    transactional_id = decode_key(record.key or b"")
    if request.transactional_ids and transactional_id not in request.transactional_ids:
        return None
    if request.prefix is not None and not transactional_id.startswith(request.prefix):
        return None
    logged = None if record.value is None else decode_value(record.value)
    row = LogRow(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        timestamp=rfc3339(record.timestamp_ms),
        transactional_id=transactional_id,
        deleted=logged is None,
    )
    return row if logged is None else _with_value(row, logged)


def _with_value(row: LogRow, logged: LoggedTransaction) -> LogRow:
    return replace(
        row,
        state=logged.state.value,
        producer_id=logged.producer_id,
        producer_epoch=logged.producer_epoch,
        transaction_timeout_ms=logged.transaction_timeout_ms,
        last_update_ms=logged.last_update_ms,
        started_ms=logged.started_ms,
        version=logged.version,
        previous_producer_id=logged.previous_producer_id,
        next_producer_id=logged.next_producer_id,
        next_producer_epoch=logged.next_producer_epoch,
        client_transaction_version=logged.client_transaction_version,
        partitions=[Place(topic=topic, partition=partition) for topic, partition in logged.partitions],
    )


def read_log_about(app: App, producer_ids: Collection[ProducerId]) -> LogLook:
    """Read the records in `__transaction_state` of ids that use these producer ids, in half of the remaining time."""
    wanted = [producer_id.to_bytes(8, "big", signed=True) for producer_id in set(producer_ids)]
    keys: set[bytes | None] = set()

    def about(records: Sequence[Record]) -> list[Record]:
        """Keep all records of a key from the first on that has one of the producer ids."""
        keys.update(one.key for one in records if one.value and any(each in one.value for each in wanted))
        return [one for one in records if one.key in keys]

    patient = with_other(app, deadline=app.deadline.half())
    try:
        with patient.topics() as store:
            read = store.read(TOPIC, isolation="read_uncommitted", partly=True, keep=about)
    except NotFoundError:
        return LogLook()  # no transaction was ever begun by an id
    except EosctlError as error:
        return LogLook(unread=error.message)
    entries, unread = [], None
    for record in read.records:
        try:
            logged = None if record.value is None else decode_value(record.value)
            entries.append(LogEntry(decode_key(record.key or b""), logged, record))
        except ProtocolError as error:
            unread = f"{TOPIC}-{record.partition}@{record.offset}: {error.message}"
    if read.missing:
        unread = f"{counted(len(read.missing), 'partition')} of {TOPIC}: {next(iter(read.missing.values()))}"
    return LogLook(tuple(entries), unread)


class NewestLogged(Struct, frozen=True):
    """The newest record of an id in `__transaction_state`; `unread` is why there is none."""

    logged: LoggedTransaction | None = None
    unread: str = ""


def read_newest(app: App, ids: Collection[TransactionalId]) -> Mapping[TransactionalId, NewestLogged]:
    """Return the newest state of each id that its coordinator wrote, or why it is not known."""
    if not ids:
        return {}
    try:
        states, missing = newest_states(app, ids)
    except InterruptedByUserError:
        raise
    except EosctlError as error:
        return dict.fromkeys(ids, NewestLogged(unread=error.message))
    why = next(iter(missing.values()), f"{TOPIC} has no record of it")
    return {each: NewestLogged(states[each]) if each in states else NewestLogged(unread=why) for each in ids}


def newest_states(
    app: App, ids: Collection[TransactionalId], *, most_records: int | None = None
) -> tuple[Mapping[TransactionalId, LoggedTransaction], Mapping[int, str]]:
    """Return the newest state of each id in `__transaction_state`, and the partitions that could not be read, with why.

    The partitions of other ids are not read, and of the others at most the newest `most_records`.
    """
    names = {each.encode("utf-8", "replace") for each in ids}

    def about(records: Sequence[Record]) -> list[Record]:
        return [one for one in records if one.key is not None and one.key[_KEY_HEAD:] in names]

    patient = with_other(app, deadline=app.deadline.half(at_most_s=_READ_S))
    with patient.topics() as store:
        bounds = store.known_bounds(TOPIC)
        wanted = {coordinator_partition(each, bounds.partitions()) for each in ids}
        since = {each.partition: each.end for each in bounds.known}
        for each in bounds.known:
            if each.partition in wanted:
                since[each.partition] = each.begin if most_records is None else max(each.begin, each.end - most_records)
        read = store.read(TOPIC, isolation="read_uncommitted", since=since, partly=True, keep=about)
    newest = {decode_key(one.key or b""): one.value for one in read.records}
    return {each: decode_value(value) for each, value in newest.items() if value is not None}, read.missing


def count_initialisations(
    app: App, transactional_ids: Collection[TransactionalId], *, since_ms: int
) -> Mapping[TransactionalId, int]:
    """Count the InitProducerIds of each id in `__transaction_state` since then: each leaves a record Empty.

    At most the last MOST_RECENT offsets of each partition are read. Raises what reading raises, and EosctlError if
    these do not reach back far enough.
    """
    keys = dict.fromkeys(transactional_ids, 0)
    names = {each.encode("utf-8", "replace") for each in keys}
    oldest_ms: dict[int, int] = {}

    def about(records: Sequence[Record]) -> list[Record]:
        for each in records:
            oldest_ms.setdefault(each.partition, each.timestamp_ms)
        return [one for one in records if one.key is not None and one.key[_KEY_HEAD:] in names]

    with app.topics() as store:
        bounds = store.bounds(TOPIC)
        wanted = {coordinator_partition(each, len(bounds)) for each in keys}
        since = {
            each.partition: max(each.begin, each.end - MOST_RECENT) if each.partition in wanted else each.end
            for each in bounds
        }
        read = store.read(TOPIC, isolation="read_uncommitted", since=since, keep=about)
    for each in bounds:
        if each.begin < since[each.partition] < each.end and oldest_ms.get(each.partition, since_ms) >= since_ms:
            raise EosctlError(
                f"the newest {MOST_RECENT:,} records of {TOPIC}-{each.partition} do not reach back so far"
            )
    for record in read.records:
        transactional_id = decode_key(record.key or b"")
        if transactional_id in keys and record.value is not None and record.timestamp_ms >= since_ms:
            keys[transactional_id] += decode_value(record.value).state is TransactionState.EMPTY
    return keys
