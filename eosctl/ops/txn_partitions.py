"""txn producers and txn hanging: what the leaders of partitions say of open transactions. Reads only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from eosctl.core.hanging import MAX_TRANSACTION_TIMEOUT_MS, find_hanging, open_candidates, unjudged
from eosctl.core.ids import owner_of
from eosctl.core.transactions import ActiveProducer, KafkaFault, TransactionDescription, TransactionListing
from eosctl.core.wording import counted
from eosctl.errors import ExitCode, NotFoundError
from eosctl.events import Event
from eosctl.ops.app import App
from eosctl.ops.ports import TransactionAdmin
from eosctl.ops.txn_report import Partition, id_problem, partition_problem, place_of, txn_report, unseen_ids_warning
from eosctl.report import Report

_BATCH = 500  # partitions per DescribeProducers round, as TransactionsCommand has it


def list_producers(app: App, topic: str, partition: int | None) -> Report:
    """Active producers of a topic's partitions, with the transactional id that now uses each producer id.

    Raises NotFoundError for a topic or partition that does not exist.
    """
    with app.transactions() as admin:
        cluster_id = admin.cluster_id()
        partitions = partitions_of(admin, topic, partition)
        answers = admin.describe_producers(partitions)
        found, faults = _active(answers)
        users = _users(admin, {producer.producer_id for producer in found})
    rows = [_producer_row(app, producer, users.get(producer.producer_id)) for producer in found]
    problems = [partition_problem(app, place, fault) for place, fault in faults.items()]
    summary = {"producers": len(rows), "open": sum(row["start_offset"] is not None for row in rows)}
    return txn_report(
        app, "txn-producers", rows, cluster_id=cluster_id, summary=summary, problems=problems, faults=faults.values()
    )


def partitions_of(admin: TransactionAdmin, topic: str, partition: int | None) -> list[Partition]:
    """One partition, or all of a topic; raises NotFoundError."""
    count = admin.topic_partitions([topic]).get(topic)
    if count is None:
        raise NotFoundError(f"there is no topic {topic}", hint="Without DESCRIBE on it, it can't be seen either.")
    if partition is not None and partition >= count:
        raise NotFoundError(f"topic {topic} has {counted(count, 'partition')}, so there is no partition {partition}")
    return [(topic, index) for index in range(count)] if partition is None else [(topic, partition)]


def _active(
    answers: Mapping[Partition, Sequence[ActiveProducer] | KafkaFault],
) -> tuple[list[ActiveProducer], dict[Partition, KafkaFault]]:
    """Producers by partition and id, and the partitions that could not be asked."""
    faults = {place: answer for place, answer in sorted(answers.items()) if isinstance(answer, KafkaFault)}
    found = [one for _place, answer in sorted(answers.items()) if not isinstance(answer, KafkaFault) for one in answer]
    return sorted(found, key=lambda one: (one.topic, one.partition, one.producer_id)), faults


def _users(admin: TransactionAdmin, producer_ids: Collection[int]) -> dict[int, str]:
    """Producer id -> the transactional id that uses it now; idempotent producers have none."""
    if not producer_ids:
        return {}
    listed = admin.list_transactions(producer_ids=sorted(producer_ids))
    return {listing.producer_id: listing.transactional_id for listing in listed}


def _producer_row(app: App, producer: ActiveProducer, transactional_id: str | None) -> dict[str, object]:
    return {
        **place_of(app, producer),
        "last_sequence": producer.last_sequence,
        "transactional_id": transactional_id,
        "owner": None if transactional_id is None else owner_of(transactional_id, app.target.group_id).as_row(),
    }


def find_hanging_transactions(
    app: App, topic: str | None, *, max_transaction_timeout_ms: int = MAX_TRANSACTION_TIMEOUT_MS
) -> Report:
    """Open transactions that no coordinator accounts for (KIP-664), of one topic or (None) of all; exit 3 if any.

    Starts from the partitions, as `TransactionsCommand find-hanging` does: a coordinator that has forgotten a
    transaction can't be asked for it.
    """
    with app.transactions() as admin:
        cluster_id = admin.cluster_id()
        partitions = _all_partitions(admin) if topic is None else partitions_of(admin, topic, None)
        found, faults = _active(_describe_in_rounds(app, admin, partitions))
        candidates = open_candidates(
            found, now_ms=app.clock.now_ms(), max_transaction_timeout_ms=max_transaction_timeout_ms
        )
        listed, described = ask_coordinators(admin, candidates)
    rows = [
        {**place_of(app, one.producer), "transactional_id": one.transactional_id, "reason": one.reason.value}
        for one in find_hanging(candidates, listed, described)
    ]
    problems = [partition_problem(app, place, fault) for place, fault in faults.items()]
    problems += unseen_ids_warning(str(row["reason"]) for row in rows)
    silent = unjudged(described)
    problems += [id_problem(app, name, fault, "describe") for name, fault in silent.items()]
    summary = {"partitions": len(partitions), "open_too_long": len(candidates), "hanging": len(rows)}
    report = txn_report(
        app,
        "txn-hanging",
        rows,
        cluster_id=cluster_id,
        summary=summary,
        problems=problems,
        faults=[*faults.values(), *silent.values()],
        judged=len(partitions) - len(faults),
    )
    return replace(report, exit_code=ExitCode.FINDINGS) if rows and report.exit_code is ExitCode.OK else report


def _all_partitions(admin: TransactionAdmin) -> list[Partition]:
    return [(topic, index) for topic, count in sorted(admin.topic_partitions().items()) for index in range(count)]


def _describe_in_rounds(
    app: App, admin: TransactionAdmin, partitions: Sequence[Partition]
) -> dict[Partition, Sequence[ActiveProducer] | KafkaFault]:
    answers: dict[Partition, Sequence[ActiveProducer] | KafkaFault] = {}
    for start in range(0, len(partitions), _BATCH):
        answers.update(admin.describe_producers(partitions[start : start + _BATCH]))
        app.on_event(Event("looking for open transactions", len(answers), len(partitions), "partitions"))
    return answers


def ask_coordinators(
    admin: TransactionAdmin, candidates: Sequence[ActiveProducer]
) -> tuple[Sequence[TransactionListing], Mapping[str, TransactionDescription | KafkaFault]]:
    """Who uses the candidates' producer ids now, and what their coordinators know of those."""
    if not candidates:
        return [], {}
    listed = admin.list_transactions(producer_ids=sorted({producer.producer_id for producer in candidates}))
    return listed, admin.describe_transactions(sorted({listing.transactional_id for listing in listed}))
