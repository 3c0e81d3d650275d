"""Transactions of RUNNING tasks that their coordinator aborted at their timeout, by `__transaction_state`. Reads only.

A task aborts transactions, too, if its connector asks for it: the time for which the transaction was open distinguishes
the two. The log is read only if a RUNNING task's newest transaction was aborted, and only the end of that partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.ids import TransactionalId
from eosctl.core.records import Record
from eosctl.core.transaction_log import TOPIC, LoggedTransaction, coordinator_partition, decode_key, decode_value
from eosctl.core.transactions import TransactionDescription, TransactionState
from eosctl.errors import EosctlError, InterruptedByUserError
from eosctl.group.observation.rules import ABORTS, Observation, TimedOut

MOST_RECORDS = 200_000
"""The number of newest records that are read of a partition of `__transaction_state`."""
_READ_S = 10.0


def with_timed_out(app: App, observation: Observation, described: Iterable[TransactionDescription]) -> Observation:
    """Return the observation with these transactions; None for one whose end the log does not explain."""
    aborted = {each.transactional_id for each in described if each.state is TransactionState.COMPLETE_ABORT}
    if not aborted:
        return observation
    try:
        newest = _newest(app, aborted)
    except InterruptedByUserError:
        raise
    except EosctlError as exc:
        return replace(observation, timed_out=dict.fromkeys(aborted)).without([ABORTS], exc.message)
    untold = dict.fromkeys(aborted - newest.keys())
    ends = {each: end for each, logged in newest.items() if (end := _timed_out(logged)) is not None}
    return replace(observation, timed_out={**untold, **ends})


def _timed_out(logged: LoggedTransaction) -> TimedOut | None:
    if logged.state is not TransactionState.COMPLETE_ABORT or logged.started_ms is None:
        return None
    open_ms = logged.last_update_ms - logged.started_ms
    if open_ms < logged.transaction_timeout_ms:
        return None
    return TimedOut(open_ms, logged.transaction_timeout_ms, logged.last_update_ms)


def _newest(app: App, ids: set[TransactionalId]) -> dict[TransactionalId, LoggedTransaction]:
    """Return the newest record of each id, as far as it is among the newest ones of its partition."""
    names = {each.encode() for each in ids}

    def about(records: Sequence[Record]) -> list[Record]:
        """Select the records of these ids; a key is a version and a length of two bytes each, then the id."""
        return [record for record in records if (record.key or b"")[4:] in names]

    patient = replace(app, deadline=app.deadline.half(at_most_s=_READ_S))
    with patient.topics() as store:
        bounds = store.known_bounds(TOPIC)
        of_ids = {coordinator_partition(each, bounds.partitions()) for each in ids}
        tails = {each.partition: max(each.begin, each.end - MOST_RECORDS) for each in bounds.known}
        since = {each.partition: each.end for each in bounds.known} | {p: tails[p] for p in of_ids & tails.keys()}
        read = store.read(TOPIC, isolation="read_uncommitted", since=since, keep=about, partly=True)
    kept = [record for record in read.records if record.value is not None]
    return {decode_key(record.key or b""): decode_value(record.value or b"") for record in kept}
