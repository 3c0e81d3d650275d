"""Spark's errors, two languages deep, come out as one line about the cause."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eosctl.core.clients.settings import ClientSettings
from eosctl.core.offsets.migration import PlannedTopic
from eosctl.core.records import Bounds
from eosctl.deadline import Deadline
from eosctl.engine.reading.ranges import OffsetRange
from eosctl.errors import (
    EosctlError,
    ExitCode,
    InputFileError,
    InterruptedByUserError,
    UnauthorizedError,
    UnreachableError,
    UsageError,
)
from eosctl.kafka.topics.pieces import read_pieces
from eosctl.migrate.spark.job import MigrationJob
from eosctl.migrate.spark.session import master_error, spark_context, spark_error, start_error
from eosctl.migrate.spark.stages import no_executor
from tests.fakes.clock import given_time
from tests.quick_spark import quick_settings

PYTHON_IN_JAVA = """An error occurred while calling o61.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
RuntimeError: no records for 60 s, still to read: t-0 up to offset 5

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
RuntimeError: no records for 60 s, still to read: t-0 up to offset 5
"""


KILLED = """An error occurred while calling o68.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 0.0 failed 4 times, most recent \
failure: Lost task 1.3 in stage 0.0 (TID 0) (host executor driver): org.apache.spark.SparkException: Python worker \
exited unexpectedly (crashed). Consider setting 'spark.python.worker.faulthandler.enabled' configuration to 'true'.
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator$$anonfun$1.applyOrElse(PythonRunner.scala:1136)
Caused by: java.io.EOFException
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)
"""
LOST = """An error occurred while calling o76.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent \
failure: Lost task 0.3 in stage 0.0 (TID 3) (host executor 3): ExecutorLostFailure (executor 3 exited caused by one of \
the running tasks) Reason: worker lost: 127.0.0.1:41567
Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.$anonfun$abortStage$3(DAGScheduler.scala:4568)
"""
NO_API_SERVER = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: org.apache.spark.SparkException: External scheduler cannot be instantiated
\tat org.apache.spark.SparkContext$.createTaskScheduler(SparkContext.scala:1)
Caused by: io.fabric8.kubernetes.client.KubernetesClientException: An error has occurred.
\tat io.fabric8.kubernetes.client.KubernetesClientException.launderThrowable(KubernetesClientException.java:129)
Caused by: java.io.IOException: Connection refused: /127.0.0.1:1
Caused by: io.netty.channel.AbstractChannel$AnnotatedConnectException: Connection refused: /127.0.0.1:1
Caused by: java.net.ConnectException: Connection refused
"""
NO_PYTHON = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 2 in stage 0.0 failed 4 times, most recent \
failure: Lost task 2.3 in stage 0.0 (TID 9) (127.0.0.1 executor 1): java.io.IOException: Cannot run program \
"/opt/venv/bin/python3": error=2, No such file or directory
Caused by: java.io.IOException: error=2, No such file or directory
"""
NO_MEMORY = NO_PYTHON.replace("error=2, No such file or directory", "error=12, Cannot allocate memory")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            NO_PYTHON,
            "executors have no program /opt/venv/bin/python3; --conf spark.pyspark.python=PATH names their Python "
            "(task 2, tried 4 times)",
        ),
        (NO_MEMORY, "executors can't run /opt/venv/bin/python3: Cannot allocate memory (task 2, tried 4 times)"),
        (
            NO_API_SERVER,
            "io.netty.channel.AbstractChannel$AnnotatedConnectException: Connection refused: /127.0.0.1:1",
        ),
        (PYTHON_IN_JAVA, "RuntimeError: no records for 60 s, still to read: t-0 up to offset 5 (task 0)"),
        (KILLED, "the Python process of a task died, killed or for want of memory (task 1, tried 4 times)"),
        (
            "x\n: org.apache.spark.SparkException: Job 0 cancelled because SparkContext was shut down\n",
            "Spark was stopped: its JVM was told to end, its master is gone, or too many executors failed",
        ),
        (LOST, "an executor was lost, killed or for want of memory (task 0, tried 4 times)"),
        (
            "x\nCaused by: java.io.IOException: No space left on device\n",
            "java.io.IOException: No space left on device",
        ),
        ("[JAVA_GATEWAY_EXITED] Java gateway process exited", "[JAVA_GATEWAY_EXITED] Java gateway process exited"),
        ("", "ValueError"),
    ],
)
def test_cause(text: str, cause: str) -> None:
    """Of a task's process that was killed the user used to read "java.io.EOFException"."""
    error = spark_error(ValueError(text), "reading")
    assert error.message == f"reading failed in Spark: {cause}"
    assert "Traceback" not in error.message


@pytest.mark.parametrize(
    ("cause", "kind", "told"),
    [
        (
            'KafkaError{code=TOPIC_AUTHORIZATION_FAILED,val=29,str=""}',
            UnauthorizedError,
            " (TOPIC_AUTHORIZATION_FAILED)",
        ),
        ('KafkaError{code=_AUTHENTICATION,val=-169,str="SASL"}', UnauthorizedError, "SASL (_AUTHENTICATION)"),
        (
            'KafkaError{code=_ALL_BROKERS_DOWN,val=-187,str="down"}',
            UnreachableError,
            "down (_ALL_BROKERS_DOWN)",
        ),
        ('KafkaError{code=_TRANSPORT,val=-195,str="refused"}', UnreachableError, "refused (_TRANSPORT)"),
        ('KafkaError{code=UNKNOWN_TOPIC_OR_PART,val=3,str="gone"}', EosctlError, "gone (UNKNOWN_TOPIC_OR_PART)"),
    ],
)
def test_what_a_client_meets_with_on_an_executor_keeps_its_exit_code(
    cause: str, kind: type[EosctlError], told: str
) -> None:
    """A missing right and a broker that is down were failures of Spark, exit code 1."""
    text = f"Traceback (most recent call last):\n  File x\ncimpl.KafkaException: {cause}\n\tat y\n"
    error = spark_error(ValueError(text), "writing")
    assert type(error) is kind
    assert error.message.startswith(f"writing failed in Spark: {told}")
    assert ("`eosctl acls generate --role offset-writer`" in str(error.hint)) == (kind is UnauthorizedError)
    lost = "RuntimeError: 1 of 2 records were not delivered: ['t-0: timed out (_MSG_TIMED_OUT)']"
    assert type(spark_error(ValueError(lost), "writing")) is UnreachableError


def test_rights_on_kubernetes() -> None:
    """Exit code 1, and a page of the API server's whole answer."""
    text = (
        "Caused by: io.fabric8.kubernetes.client.KubernetesClientException: Message: pods is forbidden: User. Received "
    )
    error = spark_error(
        ValueError(f"{text}status: Status(apiVersion=v1, code=403, reason=Forbidden).\n"), "starting Spark"
    )
    assert type(error) is UnauthorizedError
    assert error.message.endswith("KubernetesClientException: Message: pods is forbidden: User.")
    watched = "io.fabric8.kubernetes.client.KubernetesClientException: Received 403 on websocket. Message: Forbidden."
    assert type(spark_error(ValueError(f"x\n: {watched}\n"), "starting Spark")) is UnauthorizedError


def test_a_master_that_does_not_answer_has_that_exit_code(tmp_path: Path) -> None:
    """Only Spark's log says so, a minute later: it was "Spark was stopped", exit code 1."""
    path, before = tmp_path / "spark.log", "ERROR x: All masters are unresponsive! Giving up.\n"
    failed = EosctlError("reading failed in Spark: Spark was stopped")
    path.write_text(before)
    assert master_error(failed, "spark://a:7077", log_file=path, log_start=len(before)) is failed
    path.write_text(f"{before}WARN y\n{before}")
    error = master_error(failed, "spark://a:7077", log_file=path, log_start=len(before))
    assert (type(error), error.exit_code) == (UnreachableError, ExitCode.UNREACHABLE)
    assert error.message == f"Spark master spark://a:7077 does not answer: {failed.message}"


@pytest.mark.parametrize(
    "error",
    [
        InterruptedByUserError("interrupted"),
        UnauthorizedError("reading failed in Spark: denied"),
        UsageError("/snapshots is not there"),
    ],
)
def test_what_failed_for_a_reason_of_its_own_keeps_it(tmp_path: Path, error: EosctlError) -> None:
    """A master may be gone as well: Ctrl-C was an unreachable master, exit code 4, and so was a missing right."""
    path = tmp_path / "spark.log"
    path.write_text("ERROR x: All masters are unresponsive! Giving up.\n")
    assert master_error(error, "spark://a:7077", log_file=path, log_start=0) is error


@pytest.mark.parametrize(
    "cause",
    ["java.net.SocketTimeoutException: Accept timed out", "java.net.SocketTimeoutException: Read timed out"],
)
def test_a_silent_process_is_no_address_that_can_not_be_reached(cause: str) -> None:
    """A Python that does not start on an executor was a master that is not reached."""
    text = f"org.apache.spark.SparkException: Python worker failed to connect back.\nCaused by: {cause}\n\tat x\n"
    assert type(spark_error(ValueError(text), "reading")) is EosctlError


@pytest.mark.parametrize(
    "cause",
    [
        "java.net.SocketTimeoutException: connect timed out",
        "java.net.ConnectException: Connection refused",
        "java.net.UnknownHostException: master",
        "io.netty.channel.AbstractChannel$AnnotatedConnectException: Connection refused: /127.0.0.1:1",
        "io.netty.channel.ConnectTimeoutException: connection timed out: /192.0.2.1:7077",
    ],
)
def test_what_can_not_be_reached_has_that_exit_code(cause: str) -> None:
    """An API server of Kubernetes that was down was a failure like any other: exit code 1."""
    of_kubernetes = "io.fabric8.kubernetes.client.KubernetesClientException: An error has occurred."
    for before in ("org.apache.spark.SparkException: External scheduler", of_kubernetes):
        error = spark_error(ValueError(f"x\n: {before}\nCaused by: {cause}\n"), "starting Spark")
        assert (type(error), error.exit_code) == (UnreachableError, ExitCode.UNREACHABLE)
        assert error.message == f"starting Spark failed in Spark: {cause}"
        assert "--master" in str(error.hint)


def test_nobody_came() -> None:
    """On Kubernetes `spark.cores.max` asks for nothing, and pods may wait for an image."""
    pods, workers = (no_executor("reading", master, 120.0) for master in ("k8s://https://a:6443", "spark://a:7077"))
    assert pods.message == "reading: no executor came to Spark master k8s://https://a:6443 within 120 s"
    assert "kubectl describe pod" in str(pods.hint)
    assert "spark.cores.max" in str(workers.hint)


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # pyspark loses the pipe to that JVM
def test_a_spark_that_does_not_start_says_why(tmp_path: Path) -> None:
    """pyspark says that the Java gateway process exited, and nothing else."""
    settings = quick_settings(tmp_path, conf={"spark.driver.extraJavaOptions": "-agentlib:nosuch"})
    settings.log_file.write_text("Error: of a run before\n")
    told = r"^starting Spark failed: Could not find agent library nosuch on the library path"
    with pytest.raises(EosctlError, match=told), spark_context(settings):
        pytest.fail("it started")


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_context_that_its_jvm_refuses_says_why(tmp_path: Path) -> None:
    """The JVM was ended first and asked for its words then: `unexpected ConnectionRefusedError`."""
    told = "^starting Spark failed in Spark: org.apache.spark.SparkException: .*Could not parse Master URL: 'local.x.'"
    with pytest.raises(EosctlError, match=told), spark_context(quick_settings(tmp_path, master="local[x]")):
        pytest.fail("it started")


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (
            "WARNING: package sun.misc\nException in thread main: java.net.BindException: no\n\tat x.Y\n",
            "Exception in ",
        ),
        ("something else\n", "something else"),
        ("", "[JAVA_GATEWAY_EXITED] Java"),
    ],
)
def test_what_the_log_says_of_a_spark_that_did_not_start(tmp_path: Path, log: str, cause: str) -> None:
    path = tmp_path / "spark.log"
    path.write_text(f"before: an Error\n{log}")
    error = ValueError("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.")
    told = start_error(error, log_file=path, log_start=len("before: an Error\n"))
    assert cause in told.message
    assert str(path) in str(told.hint)


def test_pods_that_may_not_be_created(tmp_path: Path) -> None:
    """Spark tries a few times and stops, and only its log says why: it was exit code 1, and no right was named."""
    path, refused = tmp_path / "spark.log", "KubernetesClientException: Message: pods is forbidden: User"
    status = "Received status: Status(apiVersion=v1, code=403, reason=Forbidden)."
    path.write_text(f"WARN x\nio.fabric8.kubernetes.client.{refused}. {status}\n\tat x.Y\njava.lang.Exception: end\n")
    stopped = ValueError("x\n: java.lang.IllegalStateException: Spark context stopped while waiting for backend\n")
    error = start_error(stopped, log_file=path, log_start=0)
    assert type(error) is UnauthorizedError
    assert error.message == f"starting Spark failed in Spark: io.fabric8.kubernetes.client.{refused}."
    path.write_text("")
    assert "stopped while waiting for backend" in start_error(stopped, log_file=path, log_start=0).message


@pytest.mark.spark
def test_a_failing_task_is_one_line(spark: SparkSession, tmp_path: Path) -> None:
    topic = PlannedTopic("t", "id", 1, 1, (Bounds(0, 0, 1, 1),))
    login = ClientSettings(("127.0.0.1:1",), security_protocol="SASL_PLAINTEXT", sasl_mechanism="NO-SUCH")
    with pytest.raises(InputFileError) as caught:
        MigrationJob(spark.sparkContext, login).snapshot([topic], tmp_path / "source")
    assert "NO-SUCH" in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.spark
def test_an_error_of_ours_in_a_task_keeps_its_exit_code(spark: SparkSession, tmp_path: Path) -> None:
    """Tasks make their clients themselves: what can't be had there fails there. It was exit code 1."""
    topic = PlannedTopic("t", "id", 1, 1, (Bounds(0, 0, 1, 1),))
    client = ClientSettings(("127.0.0.1:1",), security_protocol="SSL", ssl_ca_location=str(tmp_path / "gone.pem"))
    with pytest.raises(InputFileError) as caught:
        MigrationJob(spark.sparkContext, client).snapshot([topic], tmp_path / "source")
    assert caught.value.message.startswith("reading the source failed in Spark: ")
    assert "gone.pem" in caught.value.message


@pytest.mark.parametrize(
    ("kind", "next_step"),
    [
        (UnauthorizedError, "--role offset-writer"),
        (UnreachableError, "Can the executors reach"),
        (InputFileError, "The whole"),
    ],
)
def test_what_next_after_an_error_of_ours_in_a_task(kind: type[EosctlError], next_step: str) -> None:
    told = spark_error(ValueError(f"eosctl.errors.{kind.__name__}: no token"), "reading")
    assert (type(told), told.message) == (kind, "reading failed in Spark: no token")
    assert next_step in str(told.hint)


def test_a_reader_that_reaches_no_broker_says_so() -> None:
    """It said that there were no records for a minute, as of a topic that was recreated, and exited with 1."""
    settings = ClientSettings(("127.0.0.1:1",))

    def read(timeout_s: float) -> str:
        with pytest.raises(UnreachableError) as caught:
            list(read_pieces(settings, [OffsetRange("t", 0, 0, 1)], timeout=Deadline.after(timeout_s)))
        return str(caught.value)

    told = spark_error(ValueError(f"eosctl.errors.UnreachableError: {given_time(read, first_s=1)}"), "reading")
    assert type(told) is UnreachableError
    assert "Can the executors reach the brokers" in str(told.hint)
