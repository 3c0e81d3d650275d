"""Lines that look like a failure and are none, and what librdkafka says of those that are one."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import KafkaError

from eosctl.connectors.look import known_failure
from eosctl.failures.rows import FailureRow
from eosctl.failures.tally import judged, read_all, recognise

_AT = "[2026-11-23 00:51:36,120] INFO "
_FRAME = "\n\tat a.B.c(D.java:1)"
ID_DENIED = (
    "org.apache.kafka.common.errors.TransactionalIdAuthorizationException: Transactional Id authorization failed."
)


def codes_of(text: str) -> list[str]:
    return [str(each.found.failure.code) for each in judged(read_all(text.splitlines()))]


@pytest.mark.parametrize(
    "text",
    [
        # a fencing round that goes well, at every level (DistributedHerder 3.5.1 to 4.3.1)
        _AT + "[Worker clientId=c] Performing zombie fencing request for connector c",
        _AT
        + "[Worker clientId=c] Performing a round of zombie fencing before modifying offsets for source connector c "
        "with exactly-once support enabled.",
        _AT + "[Worker clientId=c] Successfully completed zombie fencing for source connector c; proceeding to modify "
        "offsets.",
        _AT + "[Worker clientId=c] Skipping zombie fencing round for connector c as all old task generations have "
        "already been fenced out",
        _AT + "[Worker clientId=c] Forwarding zombie fencing request for connector c to leader at http://w:8083",
        # the coordinator of a consumer's group, not of a transaction
        _AT + "[Consumer clientId=c, groupId=g] Group coordinator b:9092 (id: 1 rack: null) is unavailable or invalid "
        "due to cause: error response NOT_COORDINATOR. isDisconnected: false. Rediscovery will be attempted.",
        _AT + "[Worker clientId=c, groupId=g] Group coordinator b:9092 is unavailable or invalid due to cause: "
        "coordinator unavailable: NOT_COORDINATOR",
        _AT + "[Consumer clientId=c, groupId=g] JoinGroup failed: The coordinator is loading and hence can't process "
        "requests.",
        # what other software says
        "java.lang.NoClassDefFoundError: org/postgresql/Driver" + _FRAME,
        "java.sql.SQLException: Unable to commit transaction, connection in an invalid state" + _FRAME,
        "java.lang.RuntimeException: timed out transaction" + _FRAME,
        "org.apache.kafka.connect.errors.ConnectException: x\n"
        "Caused by: org.apache.hadoop.security.authorize.AuthorizationException: User x" + _FRAME,
        _AT + "org.apache.kafka.connect [Producer clientId=x] Instantiated an idempotent producer.",
        _AT + "[TransactionCoordinator id=1] Skipping abort of timed out transaction x due to CONCURRENT",
        # what sounds like an answer of REST, a lost position or a converter, and is none
        "org.apache.kafka.common.errors.TopicExistsException: Topic 'orders' already exists." + _FRAME,
        "java.lang.IllegalStateException: Connector class com.acme.Orders not found in the cache" + _FRAME,
        "java.lang.IllegalStateException: Connector pool for orders already exists" + _FRAME,
        _AT + 'Publication dbz already exists, replication slot "dbz" is used from LSN 0/16B3748',
        _AT + "[orders|task-0] Graceful stop of task orders-0 succeeded.",
        _AT + "[Producer clientId=p] Resetting the last seen epoch of partition t-0 to 0 since the topicId changed",
        _AT + "WorkerSourceTask{id=orders-0} Committing offsets for 5 acknowledged messages",
        _AT + "Database schema history topic 'schema-shop' created",
        _AT + "org/apache/kafka/common/utils/internals/AppInfoParser loaded from kafka-clients-4.4.0.jar",
        "java.lang.NoClassDefFoundError: com/acme/Ledger" + _FRAME,
        "com.acme.RestClientException: 404 for https://api.acme.example" + _FRAME,
    ],
)
def test_it_is_no_failure(text: str) -> None:
    """INFO lines of a fencing that worked were `fencing_failed`, and consumers' were `not_coordinator`."""
    assert codes_of(text) == []


_LACKS = "org.apache.kafka.common.errors.UnsupportedVersionException: The node does not support "
CONNECTS = "org.apache.kafka.connect.errors.ConnectException: x" + _FRAME + "\nCaused by: "


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (
            CONNECTS + "java.lang.NoClassDefFoundError: org/apache/kafka/common/utils/Sanitizer",
            "plugin_does_not_fit", "4.4",
        ),
        (
            CONNECTS + "java.lang.NoClassDefFoundError: org/apache/kafka/common/utils/internals/Exit",
            "plugin_does_not_fit", "or newer, and its worker is older",
        ),
        (CONNECTS + "java.lang.ClassNotFoundException: a.jdbc.Driver", "plugin_missing", "does not have a class"),
        (
            "org.apache.kafka.common.config.ConfigException: Invalid value com.acme.Avro for configuration "
            "value.converter: Class com.acme.Avro could not be found.",
            "plugin_missing", "a class that a setting names",
        ),
        (_LACKS + "INIT_PRODUCER_ID", "request_not_supported", "transactions"),
        (_LACKS + "DESCRIBE_CONFIGS", "request_not_supported", "do not know"),
        (
            "org.apache.kafka.connect.errors.ConnectException: Error while attempting to create/find topic(s) 'o'\n"
            "Caused by: org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized",
            "task_not_authorized", "want of a right",
        ),
        (
            "org.apache.kafka.connect.errors.ConnectException: Failed to connect to and describe Kafka cluster. Check\n"
            "Caused by: org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed",
            "login_failed", "login",
        ),
    ],
)  # fmt: skip
def test_the_cause_is_said_as_precisely_as_the_text_does(text: str, code: str, said: str) -> None:
    report = recognise(text.splitlines(), source="x")
    row = report.rows[0]
    assert isinstance(row, FailureRow)
    assert (row.code, row.role) == (code, "cause")
    assert said in row.meaning


def test_a_client_that_fenced_itself_is_not_told_of_a_second_instance_first() -> None:
    """Two lines of librdkafka's were one event, and the fencing below the retry was not seen."""
    retried = "another concurrent operation on the same transaction was ongoing: retrying"
    fenced = "There is a newer producer with the same transactionalId which fences the current one (_FENCED)"
    pid = "[thrd:main]: Failed to acquire transactional PID from broker TxnCoordinator/3: Broker:"
    lines = [
        f"%4|1795856001.949|GETPID|rdkafka#producer-3| {pid} {retried}",
        f"%1|1795856002.147|TXNERR|rdkafka#producer-3| {pid} {fenced}",
    ]
    rows = {row.code: row for row in recognise(lines, source="x").rows if isinstance(row, FailureRow)}
    assert rows.keys() == {"concurrent_transactions", "producer_fenced"}
    first, second = rows["producer_fenced"].entry.causes
    assert ("it fenced itself" in first, "second instance" in second) == (True, True)


def test_a_worker_that_ended_of_something_unknown_is_said_to_be_unknown() -> None:
    text = (
        "[2026-11-23 00:51:36,120] ERROR Uncaught exception in herder work thread, exiting:\n"
        f"com.acme.OddException: canary{_FRAME}"
    )
    report = recognise(text.splitlines(), source="x")
    assert [row.code for row in report.rows_of(FailureRow)] == ["worker_ended"]
    assert [(each.outermost, each.deepest) for each in report.data.unknown] == [("com.acme.OddException",) * 2]


def test_a_class_that_is_not_there_is_a_plugins_in_connect_alone() -> None:
    said = "java.lang.NoClassDefFoundError: org/postgresql/Driver"
    assert codes_of(f"{said}\n\tat org.apache.kafka.connect.runtime.Worker.startTask(Worker.java:1)") == [
        "plugin_does_not_fit"
    ]


def test_a_handshake_that_failed_is_no_wrong_password() -> None:
    [row] = recognise(
        [_AT + "Connection to node 1 failed authentication due to: SSL handshake failed"], source="x"
    ).rows
    assert isinstance(row, FailureRow)
    assert (row.code, "ssl.truststore" in row.entry.fix, "jaas" in row.entry.fix) == ("login_failed", True, False)


@pytest.mark.parametrize(
    "said",
    [
        "Failed to perform round of zombie fencing",
        "Failed to read to end of config topic before performing zombie fencing",
        "Interrupted while attempting to perform round of zombie fencing",
        "Only the leader may perform zombie fencing.",
        "Failed to perform zombie fencing for source connector prior to modifying offsets",
    ],
)
def test_every_way_in_which_connect_fails_to_fence(said: str) -> None:
    assert codes_of(f"org.apache.kafka.connect.errors.ConnectException: {said}{_FRAME}") == ["fencing_failed"]


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (10, "record_too_large"), (45, "out_of_order_sequence"), (46, "duplicate_sequence"),
        (47, "invalid_producer_epoch"), (48, "invalid_txn_state"), (49, "invalid_pid_mapping"),
        (52, "coordinator_fenced"), (59, "unknown_producer_id"), (88, "unstable_offsets"), (90, "producer_fenced"),
        (120, "transaction_abortable"), (-144, "producer_fenced"),
    ],
)  # fmt: skip
def test_the_words_of_librdkafka(number: int, code: str) -> None:
    assert codes_of(f"%3|1|FAIL|rdkafka#producer-1| [thrd:x]: Failed: {KafkaError(number).str()}") == [code]


def test_a_fatal_error_of_librdkafka_is_a_fencing() -> None:
    fatal = KafkaError(-144).str() + ": ProduceRequest for t [0] failed: " + KafkaError(47).str()
    assert codes_of(f"%1|1|FATAL|rdkafka#producer-1| [thrd:x]: Fatal error: {fatal}") == ["producer_fenced"]


def test_a_producer_before_2_7_may_be_fenced_or_too_late() -> None:
    """Its message says "either … or"; it used to be taken for a timeout."""
    said = (
        "org.apache.kafka.common.errors.ProducerFencedException: Producer attempted an operation with an old epoch. "
        "Either there is a newer producer with the same transactionalId, or the producer's transaction has been "
        "expired by the broker."
    )
    assert codes_of(said) == ["producer_fenced"]


@pytest.mark.parametrize("than", ["smaller than", "smaller than or equal to"])
def test_an_old_epoch_in_a_brokers_log_of_any_version(than: str) -> None:
    """ProducerAppendInfo: "which is smaller than the last seen epoch" up to 3.9, in two parts in 4.3.1."""
    said = f"Epoch of producer 1 at offset 7 in t-0 is 3, which is {than} the last seen epoch 4"
    assert codes_of(f"[2026-11-23 00:51:36,120] ERROR {said}") == ["invalid_producer_epoch"]


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps({"error_code": 500, "message": f"Failed to perform zombie fencing: {ID_DENIED}"}),
        json.dumps({"error_code": 500, "message": ID_DENIED}),
        json.dumps({"tasks": [{"id": 0, "state": "FAILED", "worker_id": "w:8083", "trace": ID_DENIED}]}),
        json.dumps({"tasks": [{"id": 0, "state": "FAILED", "worker_id": "w:8083", "trace": ID_DENIED}]}, indent=2),
    ],
)
def test_what_rest_answers_is_connects_for_explain_as_for_doctor(answer: str) -> None:
    """Of one line without a frame explain named the plain producer's entry."""
    known = known_failure(ID_DENIED)
    assert known is not None
    assert codes_of(answer)[:1] == [known.failure.code] == ["fencing_not_authorized"]


def test_a_log_after_an_answer_of_rest_is_nobodys_in_particular() -> None:
    answer = json.dumps({"error_code": 500, "message": "x"})
    logged = json.dumps({"level": "ERROR", "message": ID_DENIED})
    assert codes_of(f"{answer}\n{logged}") == ["id_not_authorized"]
    assert codes_of(f"{answer}\n[2026-11-23 00:51:36,120] ERROR {ID_DENIED}") == ["id_not_authorized"]


def test_a_full_disk_in_the_trace_of_a_task_is_no_brokers() -> None:
    """Its remedy was to make room in log.dirs and to start a broker, where a worker's disk or a database's is full."""
    match = known_failure(f"java.io.IOException: No space left on device{_FRAME}")
    assert match is not None
    assert (match.means, "log.dirs" in match.fix) == ("a file system is full", False)
