"""The operations `txn list`, `describe` and `coordinator`, as coordinators report transactional ids. Reads only."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.acls.lines import grant_hint
from eosctl.core.ids import Owner, ProducerId, TransactionalId
from eosctl.core.transaction_log import TOPIC, coordinator_partition, java_string_hash
from eosctl.core.transactions import (
    OPEN_STATES,
    OPEN_STATES_BEFORE_4,
    Coordinator,
    KafkaFault,
    TransactionDescription,
    TransactionListings,
    TransactionState,
)
from eosctl.core.wording import rfc3339
from eosctl.errors import UnauthorizedError, UnsupportedError, UsageError
from eosctl.output.rows import Place
from eosctl.ports import TransactionAdmin
from eosctl.report import Problem, Report
from eosctl.txn.hanging import unjudged
from eosctl.txn.owners import NOT_CHECKED, owners_of_ids
from eosctl.txn.report import hidden_ids_warning, id_problem, missing_ids_problems, txn_report
from eosctl.txn.rows import (
    TXN_COORDINATOR,
    TXN_DESCRIBE,
    TXN_LIST,
    CoordinatorRow,
    CoordinatorsSummary,
    DescribedRow,
    ListedRow,
    ListSummary,
    RowsSummary,
)

T = TypeVar("T")
R = TypeVar("R")


class ListFilter(Struct, frozen=True):
    """The conditions of a listing; all must hold. `client_side` filters here what old brokers can't."""

    states: tuple[str, ...] = ()
    producer_ids: tuple[ProducerId, ...] = ()
    open_longer_than_ms: int | None = None
    pattern: str | None = None
    client_side: bool = False


def list_transactions(app: App, wanted: ListFilter) -> Report:
    """Report one row per id; a value that a listing lacks is null. Exit with 7 if a coordinator can't be asked.

    Raises UnsupportedError, naming the Kafka version, for a filter that a broker can't apply.
    """
    with app.transactions() as admin:
        listings = _list_here(app, admin, wanted) if wanted.client_side else _list_there(admin, wanted)
        cluster_id = admin.cluster_id()  # known since the listing
    found = sorted(listings.found, key=lambda each: each.transactional_id)
    owners = owners_of_ids(app, [each.transactional_id for each in found])
    rows = [
        ListedRow(
            transactional_id=each.transactional_id,
            state=each.state._value_,  # which `value` looks up anew, for as long as the rest takes
            producer_id=each.producer_id,
            coordinator=each.coordinator_id,
            owner=owners[each.transactional_id],
        )
        for each in found
    ]
    problems = [*hidden_ids_warning(app, rows), *missing_ids_problems(listings)]
    return txn_report(
        app,
        TXN_LIST,
        rows,
        cluster_id=cluster_id,
        summary=_states(rows),
        problems=problems,
        faults=listings.missing,
        judged=1,  # what no coordinator answers is an error, not a report
    )


def list_open_longer_than(app: App, admin: TransactionAdmin, least_ms: int) -> TransactionListings:
    """List the ids whose transaction has been open for that long; brokers before Kafka 3.8 list all open ones."""
    wanted = ListFilter(open_longer_than_ms=least_ms)
    try:
        return _list_there(admin, wanted)
    except UnsupportedError:
        return _list_here(app, admin, replace(wanted, states=OPEN_STATES_BEFORE_4))


def _list_there(admin: TransactionAdmin, wanted: ListFilter) -> TransactionListings:
    """List with the brokers' own filters; drop ids without an open transaction from a listing by duration.

    A broker measures an idle id from the start of its last transaction, or from 1970 if it never had one
    (`TransactionStateManager.listTransactionStates`, Kafka 3.8 to 4.3).
    """
    try:
        listings = admin.list_transactions(
            states=wanted.states,
            producer_ids=wanted.producer_ids,
            duration_ms=wanted.open_longer_than_ms,
            pattern=wanted.pattern,
        )
    except UnsupportedError as error:
        hint = error.hint or "Add --client-side to list everything and filter here."
        raise UnsupportedError(error.message, hint=hint) from error
    if wanted.open_longer_than_ms is None:
        return listings
    return replace(listings, found=[each for each in listings.found if each.state in OPEN_STATES])


def _list_here(app: App, admin: TransactionAdmin, wanted: ListFilter) -> TransactionListings:
    try:
        pattern = re.compile(wanted.pattern if wanted.pattern is not None else ".*", re.DOTALL)
    except re.error as exc:
        raise UsageError(f"{wanted.pattern!r} is not a regular expression: {exc}") from exc
    listings = admin.list_transactions(states=wanted.states, producer_ids=wanted.producer_ids)
    found = [each for each in listings.found if pattern.fullmatch(each.transactional_id)]
    if wanted.open_longer_than_ms is None:
        return replace(listings, found=found)
    found = [each for each in found if each.state in OPEN_STATES]
    described = admin.describe_transactions([each.transactional_id for each in found])
    latest_ms = app.clock.now_ms() - wanted.open_longer_than_ms
    started = [each for each in found if _started_before(described.get(each.transactional_id), latest_ms)]
    unknown = {fault.code: fault for fault in unjudged(described).values()}
    return TransactionListings(started, (*listings.missing, *unknown.values()))


def _started_before(state: TransactionDescription | KafkaFault | None, latest_ms: int) -> bool:
    return isinstance(state, TransactionDescription) and state.started_ms is not None and state.started_ms < latest_ms


def describe_transactions(app: App, ids: Sequence[TransactionalId]) -> Report:
    """Report one row per id that a coordinator knows; exit with 1 if it knows none of them, with 7 if only some.

    An id whose coordinator can't be asked has a row, too, with the state `not_checked`.
    """
    wanted = list(dict.fromkeys(ids))
    if "" in wanted:
        raise UsageError("an empty transactional id is nobody's")
    with app.transactions() as admin:
        described = admin.describe_transactions(wanted)
        cluster_id = admin.cluster_id()  # which has come with the coordinators
    owners = owners_of_ids(app, wanted)
    found, faults = _split(wanted, described, lambda name, state: _description_row(app, state, owners[name]))
    problems = [id_problem(app, name, fault, "describe") for name, fault in faults.items()]
    unread = [name for name, fault in faults.items() if not fault.is_unknown_id]
    by_name = {row.transactional_id: row for row in found}
    by_name |= {name: _unread_row(name, owners[name]) for name in unread}
    rows = [by_name[name] for name in wanted if name in by_name]
    return txn_report(
        app,
        TXN_DESCRIBE,
        rows,
        cluster_id=cluster_id,
        summary=RowsSummary(rows=len(rows)),
        problems=problems,
        faults=faults.values(),
        judged=len(found),
    )


def _unread_row(transactional_id: TransactionalId, owner: Owner) -> DescribedRow:
    """Return the row of an id whose coordinator did not answer."""
    return DescribedRow(transactional_id=transactional_id, state=NOT_CHECKED, started=None, owner=owner)


def _description_row(app: App, state: TransactionDescription, owner: Owner) -> DescribedRow:
    """Return the row of a transaction as its coordinator describes it."""
    age_ms = None if state.started_ms is None else max(0, app.clock.now_ms() - state.started_ms)
    return DescribedRow(
        transactional_id=state.transactional_id,
        state=state.state.value,
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        coordinator=state.coordinator.node_id,
        transaction_timeout_ms=state.transaction_timeout_ms,
        started_ms=state.started_ms,
        started=rfc3339(state.started_ms),
        age_ms=age_ms,
        partitions=[Place(topic=topic, partition=partition) for topic, partition in state.partitions],
        owner=owner,
    )


def find_coordinators(app: App, ids: Sequence[TransactionalId]) -> Report:
    """Report Java's hash of each id, its partition of `__transaction_state`, and the broker that leads it."""
    wanted = list(dict.fromkeys(ids))
    with app.transactions() as admin:
        cluster_id = admin.cluster_id()
        found = admin.find_coordinators(wanted)
        partitions, unseen = _log_partitions(app, admin)  # after the lookup, which creates the topic
    rows, faults = _split(wanted, found, lambda name, where: _coordinator_row(name, where, partitions))
    problems = [id_problem(app, name, fault, "find the coordinator of") for name, fault in faults.items()] + unseen
    summary = CoordinatorsSummary(ids=len(rows), partitions=partitions)
    return txn_report(
        app, TXN_COORDINATOR, rows, cluster_id=cluster_id, summary=summary, problems=problems, faults=faults.values()
    )


def _log_partitions(app: App, admin: TransactionAdmin) -> tuple[int | None, list[Problem]]:
    """Return the number of partitions of `__transaction_state`; without the right to it, return a problem."""
    try:
        return admin.topic_partitions([TOPIC]).get(TOPIC), []
    except UnauthorizedError as error:
        message = f"the partition of each id is unknown: {error.message}"
        hint = grant_hint("DESCRIBE", "Topic", [TOPIC], settings=app.target.client)
        return None, [Problem(error.code, message, hint).as_warning()]


def _coordinator_row(
    transactional_id: TransactionalId, coordinator: Coordinator, partitions: int | None
) -> CoordinatorRow:
    return CoordinatorRow(
        transactional_id=transactional_id,
        hash=java_string_hash(transactional_id),
        partition=None if partitions is None else coordinator_partition(transactional_id, partitions),
        coordinator=coordinator.node_id,
        host=coordinator.host,
        port=coordinator.port,
    )


def _split(
    keys: Sequence[TransactionalId],
    answers: Mapping[TransactionalId, T | KafkaFault],
    to_row: Callable[[TransactionalId, T], R],
) -> tuple[list[R], dict[TransactionalId, KafkaFault]]:
    """Convert the good answers to rows; return them and the faults of the others, both in the order of `keys`."""
    faults: dict[TransactionalId, KafkaFault] = {}
    rows: list[R] = []
    for key in keys:
        answer = answers.get(key, KafkaFault(-1, "UNKNOWN_SERVER_ERROR", "the answer does not mention this id"))
        if isinstance(answer, KafkaFault):
            faults[key] = answer
        else:
            rows.append(to_row(key, answer))
    return rows, faults


def _states(rows: Collection[ListedRow]) -> ListSummary:
    counts = Counter(row.state for row in rows)
    order = [state.value for state in TransactionState]
    return ListSummary(ids=len(rows), counts={name: counts[name] for name in order if name in counts})
