"""What the reports of `txn` share: rows of places and descriptions, problems, targets and exit codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eosctl.core.acl_lines import grant_hint, kafka_acls_line
from eosctl.core.hanging import Reason
from eosctl.core.transactions import TRANSACTIONAL_ID_NOT_FOUND, ActiveProducer, KafkaFault
from eosctl.errors import ExitCode
from eosctl.ops.app import App
from eosctl.ops.fence_report import AUTHORIZATION_CODES, exit_code_of_faults
from eosctl.report import Problem, Report, Row, rfc3339

Partition = tuple[str, int]


def place_of(app: App, producer: ActiveProducer) -> dict[str, object]:
    """The members that every row about a producer on a partition has."""
    return {
        "topic": producer.topic,
        "partition": producer.partition,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "coordinator_epoch": producer.coordinator_epoch,
        "start_offset": producer.txn_start_offset,
        "last_timestamp_ms": producer.last_timestamp_ms,
        "last_timestamp": rfc3339(producer.last_timestamp_ms),
        "age_ms": max(0, app.clock.now_ms() - producer.last_timestamp_ms),
    }


def id_problem(app: App, transactional_id: str, fault: KafkaFault, doing: str) -> Problem:
    """Why one id has no row."""
    if fault.code == TRANSACTIONAL_ID_NOT_FOUND:
        forgotten = "`eosctl txn list` shows what they know; an id that is not used for 7 days is forgotten."
        return Problem("not_found", f"no coordinator knows {transactional_id}", forgotten)
    denied = fault.code in AUTHORIZATION_CODES
    hint = grant_hint("DESCRIBE", "TransactionalId", [transactional_id], settings=app.target.client) if denied else None
    return Problem(
        "not_authorized" if denied else "failed", f"could not {doing} {transactional_id}: {text_of(fault)}", hint
    )


def partition_problem(app: App, place: Partition, fault: KafkaFault) -> Problem:
    """Why one partition could not be looked at."""
    denied = fault.code in AUTHORIZATION_CODES
    hint = grant_hint("READ", "Topic", [place[0]], settings=app.target.client) if denied else None
    return Problem(
        "not_authorized" if denied else "failed",
        f"could not ask for the producers of {place[0]}-{place[1]}: {text_of(fault)}",
        hint,
    )


def unseen_ids_warning(reasons: Iterable[str | None]) -> list[Problem]:
    """What a missing owner may also mean: brokers list only ids that one may DESCRIBE, and do not say so."""
    if Reason.NO_TRANSACTIONAL_ID not in reasons:
        return []
    return [
        Problem(
            "ids_may_be_hidden",
            "no listed id uses this producer id; an id that this principal may not DESCRIBE is not listed either",
            hint="Be sure that the principal may DESCRIBE every TransactionalId before you abort anything.",
            severity="warning",
        )
    ]


def hidden_ids_warning(app: App, found: Sequence[object]) -> list[Problem]:
    """Nothing found where clients have names: it may be that there is nothing, or that it is not shown."""
    client = app.target.client
    if found or client is None or client.security_protocol == "PLAINTEXT":
        return []
    user = client.sasl_username or "this principal"
    line = kafka_acls_line(["DESCRIBE"], "TransactionalId", "*", settings=client)
    return [
        Problem(
            "ids_may_be_hidden",
            f"ids may be hidden: brokers list only those that {user} may DESCRIBE, and do not say so",
            hint=f"To let it see all of them:\n{line}",
            severity="warning",
        )
    ]


def text_of(fault: KafkaFault) -> str:
    """A fault as one phrase."""
    return f"{fault.name}: {fault.message}" if fault.message not in ("", fault.name) else fault.name


def txn_report(
    app: App,
    kind: str,
    rows: Sequence[Row],
    *,
    cluster_id: str,
    summary: Row | None = None,
    problems: Sequence[Problem] = (),
    faults: Iterable[KafkaFault] = (),
    judged: int | None = None,
) -> Report:
    """The report of one `txn` command; its exit code follows from what failed.

    `judged`: how many questions were answered, where that is not the number of rows.
    """
    broken = list(faults)
    code = ExitCode.OK
    if broken:
        answered = len(rows) if judged is None else judged
        code = ExitCode.PARTIAL if answered else exit_code_of_faults(broken)
    target = {"kafka_cluster_id": cluster_id, "group_id": app.target.group_id}
    return Report(kind, rows, summary or {"rows": len(rows)}, target=target, problems=problems, exit_code=code)
