"""Common elements of the reports of `txn`: rows of places and descriptions, problems, targets and exit codes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from eosctl.app import App
from eosctl.core.acls.lines import grant_hint, kafka_acls_line
from eosctl.core.ids import TransactionalId
from eosctl.core.transactions import ActiveProducer, KafkaFault, TransactionListings
from eosctl.core.wording import counted, rfc3339
from eosctl.errors import EosctlError, ExitCode, NotFoundError, UnauthorizedError
from eosctl.foreign import Lines
from eosctl.output.rows import Kind
from eosctl.report import Problem, Report
from eosctl.txn import codes
from eosctl.txn.hanging import Reason
from eosctl.txn.owners import AUTHORIZATION_CODES, exit_code_of_faults
from eosctl.txn.rows import WriterRow

Partition = tuple[str, int]
_MOST_NAMED = 10
_ASK_AGAIN = "Bring the broker back, then run again."


def writer_of(app: App, producer: ActiveProducer) -> WriterRow:
    """Return the fields that every row about a producer on a partition has."""
    return WriterRow(
        topic=producer.topic,
        partition=producer.partition,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        coordinator_epoch=producer.coordinator_epoch,
        start_offset=producer.txn_start_offset,
        last_timestamp_ms=producer.last_timestamp_ms,
        last_timestamp=rfc3339(producer.last_timestamp_ms),
        age_ms=max(0, app.clock.now_ms() - producer.last_timestamp_ms),
    )


def id_problem(app: App, transactional_id: TransactionalId, fault: KafkaFault, doing: str) -> Problem:
    """Return the problem that explains why an id has no row."""
    if fault.is_unknown_id:
        forgotten = "`eosctl txn list` shows what they know; an id that is not used for 7 days is forgotten."
        return Problem(NotFoundError.code, f"no coordinator knows {transactional_id}", forgotten)
    denied = fault.code in AUTHORIZATION_CODES
    hint = grant_hint("DESCRIBE", "TransactionalId", [transactional_id], settings=app.target.client) if denied else None
    return Problem(
        UnauthorizedError.code if denied else EosctlError.code, f"could not {doing} {transactional_id}: {fault}", hint
    )


def partition_problems(app: App, faults: Mapping[Partition, KafkaFault]) -> list[Problem]:
    """Return one problem per reason why partitions could not be looked at."""
    by_reason: defaultdict[str, list[Partition]] = defaultdict(list)
    for place, fault in faults.items():
        by_reason[fault.name].append(place)
    return [_partition_problem(app, places, faults[places[0]]) for places in by_reason.values()]


def _partition_problem(app: App, places: Sequence[Partition], fault: KafkaFault) -> Problem:
    named = ", ".join(f"{topic}-{partition}" for topic, partition in places[:_MOST_NAMED])
    more = f" and {counted(len(places) - _MOST_NAMED, 'more partition')}" if len(places) > _MOST_NAMED else ""
    denied = fault.code in AUTHORIZATION_CODES
    topics = sorted({topic for topic, _partition in places})
    hint = grant_hint("READ", "Topic", topics, settings=app.target.client) if denied else None
    why = str(fault) if len(places) == 1 else fault.name
    return Problem(
        UnauthorizedError.code if denied else codes.NOT_CHECKED,
        f"could not ask for the producers of {named}{more}: {why}",
        hint,
    )


def missing_ids_problems(listings: TransactionListings) -> list[Problem]:
    """Return one problem per coordinator whose ids are missing from a listing."""
    return [
        Problem(codes.NOT_CHECKED, f"some transactional ids are not known: {each}", _ASK_AGAIN)
        for each in listings.missing
    ]


def unseen_ids_warning(reasons: Iterable[str | None]) -> list[Problem]:
    """Warn that an owner may be hidden: brokers silently list only ids that the principal may DESCRIBE."""
    if Reason.NO_TRANSACTIONAL_ID not in reasons:
        return []
    return [
        Problem(
            codes.IDS_MAY_BE_HIDDEN,
            "no listed id uses the producer id of a hanging transaction; ids that this principal may not DESCRIBE "
            "are not listed",
            hint="Be sure that the principal may DESCRIBE every TransactionalId before you abort anything.",
        )
    ]


def hidden_ids_warning(app: App, found: Sequence[object]) -> list[Problem]:
    """Warn, if nothing was found and clients authenticate, that ids may be hidden instead of absent."""
    client = app.target.client
    if found or client is None or client.security_protocol == "PLAINTEXT":
        return []
    user = client.sasl_username or "this principal"
    line = kafka_acls_line(["DESCRIBE"], "TransactionalId", "*", settings=client)
    return [
        Problem(
            codes.IDS_MAY_BE_HIDDEN,
            f"ids may be hidden: brokers list only those that {user} may DESCRIBE, and do not say so",
            hint=Lines.of("To let it see all of them:", line),
        )
    ]


def txn_report(
    app: App,
    kind: Kind,
    rows: Sequence[object],
    *,
    cluster_id: str,
    summary: object,
    problems: Sequence[Problem] = (),
    faults: Iterable[KafkaFault] = (),
    judged: int | None = None,
) -> Report:
    """Build the report of one `txn` command; derive the exit code from the faults.

    `judged` is the number of answered questions, if that is not the number of rows.
    """
    broken = list(faults)
    code = ExitCode.OK
    if broken:
        answered = len(rows) if judged is None else judged
        code = ExitCode.PARTIAL if answered else exit_code_of_faults(broken)
    target = {"kafka_cluster_id": cluster_id, "group_id": app.target.group_id}
    return Report(kind, rows, summary, target=target, problems=problems, exit_code=code)
