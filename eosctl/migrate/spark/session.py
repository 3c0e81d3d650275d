"""One quiet Spark session per command, started fast and ended completely, with errors in one line.

pyspark would let the JVM write over the terminal and leave it running; here its output goes into a log file and it ends
with the session. Nothing in here knows Kafka or what the job does.

The archive of the classes that Spark loads to start and to migrate halves the start-up time.

Errors inside Spark take one line: stack traces of two languages never reach the user.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pyspark
from msgspec import Struct
from py4j.protocol import INPUT_CONVERTER, Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter

import eosctl
from eosctl import errors
from eosctl.errors import EosctlError, UnauthorizedError, UnreachableError
from eosctl.machine.children import child_environ
from eosctl.machine.class_archive import ClassArchive, KeptFile, archive_name


def spark_class_archive(folder: Path, *, java_home: Path | None, work_dir: Path) -> ClassArchive | None:
    """Return the archive in `folder` for this Java and these jars; None if Java is unknown.

    Drafts of it are in `work_dir`.
    """
    if java_home is None:
        return None
    name = archive_name(java_home / "bin" / "java", sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar")))
    if not name:
        return None
    return ClassArchive(
        KeptFile(folder, f"migration-spark-{pyspark.__version__}-{name}", ".jsa"), work_dir / "classes.jsa"
    )


_EXCEPTION_LINE = re.compile(r"^(?:Caused by: |: )?([\w.$]*(?:Error|Exception)\b.*)$", re.MULTILINE)
_TELLING = re.compile(r"\bError\b|Exception\b|Unrecognized|Invalid|Could not|not found|cannot|unable to", re.IGNORECASE)
_OF_NO_USE = re.compile(
    r"\s+at |WARNING: |\S+ \S+ WARN |NOTE: |Picked up |Error occurred during init"
    r"|Error: A fatal exception|Error: Could not create"
)
"""Lines of a log that report no reason: stack frames, warnings, and the launcher's last words, always the same."""

_LOG_LIMIT = 200_000
_OUR_ERROR = re.compile(r"eosctl\.errors\.(\w+): (.*)")
_KAFKA_ERROR = re.compile(r'KafkaError\{code=(\w+),val=-?\d+,str="(.*?)"\}')
_UNREACHABLE = ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_TIMED_OUT", "_TIMED_OUT_QUEUE", "_MSG_TIMED_OUT")
_NEXT: dict[type[EosctlError], str] = {
    UnauthorizedError: "`eosctl acls generate --role offset-writer` prints what is needed. ",
    UnreachableError: "Can the executors reach the brokers, at the addresses that they advertise? ",
}
_NO_CONNECTION = re.compile(
    r"\b\w*(?:Connect|ConnectTimeout|HttpTimeout|UnknownHost|NoRouteToHost|UnresolvedAddress)Exception\b"
    r"|\bSocketTimeoutException: [Cc]onnect"
)
"""Java's exceptions for an address that can't be reached; a Python that does not start is a SocketTimeoutException."""
_TASK = re.compile(r"Task (\d+) in stage \S+ failed (\d+) times")
_WRAPPERS = ("org.apache.spark", "java.", "py4j.", "pyspark.", "io.fabric8.")
_DEATHS = {
    "Python worker exited unexpectedly": "the Python process of a task died, killed or for want of memory",
    "ExecutorLostFailure": "an executor was lost, killed or for want of memory",
    "SparkContext was shut down": "Spark was stopped: its JVM was told to end, its master is gone, or too many "
    "executors failed",
}
"""Spark's words for a process that died or gave up instead of failing: its exceptions explain nothing."""
_STOPPED, _OF_KUBERNETES = "Spark context stopped while waiting for backend", "KubernetesClientException"
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)".*?\berror[=:] ?(\d+),? \(?([^()\n]+)')


def start_error(error: BaseException, *, log_file: Path, log_start: int) -> EosctlError:
    """Return the error for a Spark that did not start, with the JVM's own words from the log after `log_start`.

    pyspark only says that the JVM exited before it reported its port, or that Spark stopped: for want of pods, say.
    """
    output, text = "", str(error)
    if "JAVA_GATEWAY_EXITED" in text or _STOPPED in text:
        with suppress(OSError), log_file.open("rb") as log:
            log.seek(log_start)
            output = log.read(_LOG_LIMIT).decode("utf-8", "replace")
    if _STOPPED in text:
        refused = [line for line in _EXCEPTION_LINE.findall(output) if _OF_KUBERNETES in line]
        return spark_error(ValueError(refused[-1]) if refused else error, "starting Spark", log_file=log_file)
    lines = [line.strip() for line in output.splitlines() if line.strip() and not _OF_NO_USE.match(line)]
    telling = [line for line in lines if _TELLING.search(line)] or lines
    if not telling:
        return spark_error(error, "starting Spark", log_file=log_file)
    return EosctlError(f"starting Spark failed: {telling[0][:500]}", hint=f"The whole story is in {log_file}.")


_NO_MASTER = "All masters are unresponsive"
"""What Spark says, in its log alone, when it has tried for a minute to reach a standalone master."""


def master_error(error: EosctlError, master: str, *, log_file: Path, log_start: int) -> EosctlError:
    """Return the error for a stage that failed: UnreachableError where the log after `log_start` has that reason.

    One that has a class of its own is about something else, and stays.
    """
    if type(error) is not EosctlError:
        return error
    with suppress(OSError), log_file.open("rb") as log:
        log.seek(max(log_start, log_file.stat().st_size - _LOG_LIMIT))
        if _NO_MASTER in log.read().decode("utf-8", "replace"):
            hint = f"Check --master, and that this machine can reach it. The whole story is in {log_file}."
            return UnreachableError(f"Spark master {master} does not answer: {error.message}", hint=hint)
    return error


def spark_error(error: BaseException, doing: str, *, log_file: Path | None = None) -> EosctlError:
    """Return the error for a failure inside Spark: the innermost line that is not about Spark itself, and the task."""
    text = str(error)
    where = str(log_file) if log_file else "spark.log beside the snapshot folder"
    kind, message, hint = _meaning(_cause(error, text))
    return kind(f"{doing} failed in Spark: {message}{_task(text)}", hint=f"{hint}The whole story is in {where}.")


def _meaning(cause: str) -> tuple[type[EosctlError], str, str]:
    """Return the class that a task's error has without Spark, and so the exit code, its message, and the next step."""
    if ours := _OUR_ERROR.fullmatch(cause):
        kind = getattr(errors, ours[1], EosctlError)
        return kind, ours[2], _NEXT.get(kind, "")
    if _OF_KUBERNETES in cause:
        refused = re.search(r"\b(?:code=|Received )40[13]\b", cause)
        return UnauthorizedError if refused else EosctlError, cause.partition(" Received status: ")[0], ""
    kafkas = _KAFKA_ERROR.search(cause)
    message = f"{kafkas[2]} ({kafkas[1]})" if kafkas else cause
    if re.search(r"\b\w*(?:AUTHORIZATION|AUTHENTICATION)(?:_FAILED)?\b", cause):
        return UnauthorizedError, message, _NEXT[UnauthorizedError]
    if any(re.search(rf"\b{name}\b", cause) for name in _UNREACHABLE):
        return UnreachableError, message, _NEXT[UnreachableError]
    if _NO_CONNECTION.search(cause):
        return UnreachableError, message, "Can this machine, and do executors, reach what --master names? "
    return EosctlError, message, ""


def _cause(error: BaseException, text: str) -> str:
    if failed := _NO_PROGRAM.search(text):
        program, number, why = failed.groups()
        if int(number) == errno.ENOENT:
            return f"executors have no program {program}; --conf spark.pyspark.python=PATH names their Python"
        return f"executors can't run {program}: {why}"
    lines: list[str] = _EXCEPTION_LINE.findall(text)
    ours = [line for line in lines if not line.startswith(_WRAPPERS)]
    deaths = [meaning for words, meaning in _DEATHS.items() if words in text]
    return [*(lines or [text.strip().partition("\n")[0] or type(error).__name__]), *deaths, *ours][-1]


def _task(text: str) -> str:
    """Return which task it was, and how often it was tried, if Spark gave up because of one."""
    found = _TASK.search(text)
    if found is None:
        return ""
    number, times = found.groups()
    return f" (task {number})" if times == "1" else f" (task {number}, tried {times} times)"


_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = Console
appender.file.name = file
appender.file.target = SYSTEM_ERR
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{ISO8601} %p %c{1}: %m%n%ex
"""

SPECULATION = "spark.speculation"
_SOCKET_NAME, _SOCKET_PATH = len("/.01234567-0123-0123-0123-0123456789ab.sock"), 103
"""The length of the name that Spark gives a socket in its folder, and that of its path at most: 107 bytes on Linux, 103
on macOS."""


class SessionSettings(Struct, frozen=True):
    """The settings of a Spark session.

    `conf` is the user's own `--conf K=V` and takes precedence over everything but SPECULATION. With `java_home` None
    Spark looks for Java itself. `work_dir` receives the package zip and Spark's scratch files, `log_file` everything
    that the JVM would have printed. In `cache` the JVM's classes are kept for the next start.
    """

    work_dir: Path
    log_file: Path
    master: str = "local[*,4]"
    java_home: Path | None = None
    driver_memory: str = "1g"
    conf: Mapping[str, str] = {}
    cache: Path | None = None

    def class_archive(self) -> ClassArchive | None:
        """Return the archive of the JVM's classes; None without a cache, or if `conf` decides what the JVM loads."""
        own = {"spark.driver.extraJavaOptions", "spark.driver.extraClassPath", "spark.driver.defaultJavaOptions"}
        if self.cache is None or own & set(self.conf):
            return None
        return spark_class_archive(self.cache, java_home=self.java_home, work_dir=self.work_dir)

    def effective_master(self) -> str:
        """Return where Spark runs: the user's own `conf` may name another master."""
        return self.conf.get("spark.master", self.master)

    def is_local(self) -> bool:
        """Tell whether tasks run on this machine, in processes of this one's JVM."""
        master = self.effective_master()
        return master == "local" or master.startswith("local[")

    def lacks_classes(self) -> bool:
        """Tell whether classes should be loaded for the archive by a rehearsal.

        On a cluster none is tried: executors do not see this machine's folders.
        """
        archive = self.class_archive()
        return archive is not None and archive.kept() is None and self.is_local()

    def runs_installed(self) -> bool:
        """Tell whether tasks find the installed pyspark and eosctl: on this machine, with the same Python."""
        is_unzipped = Path(pyspark.__file__).is_file()  # spark-submit puts Spark's own pyspark.zip before the installed
        return self.is_local() and is_unzipped and "spark.pyspark.python" not in self.conf


@contextmanager
def spark_context(settings: SessionSettings) -> Iterator[SparkContext]:
    """Open a Spark context; at the end of the block context, JVM and Python workers are gone."""
    settings.work_dir.mkdir(parents=True, exist_ok=True)
    conf = SparkConf(loadDefaults=False).setAll(list(session_conf(settings).items()))
    environment: dict[str, str | None] = dict.fromkeys(os.environ.keys() - child_environ().keys())
    environment["PYSPARK_PYTHON"] = settings.conf.get("spark.pyspark.python", sys.executable)
    if settings.java_home is not None:
        environment["JAVA_HOME"] = str(settings.java_home)
    settings.log_file.parent.mkdir(parents=True, exist_ok=True)
    with _environment(environment), _quiet_logging(), settings.log_file.open("ab") as log:
        log_start = log.tell()
        with _interrupt_handler_kept():
            gateway, context = _started(conf, log, settings.log_file)
        patience_s = 5.0  # what failed need not leave a class archive
        _let_accumulators_end_alone(context)
        try:
            yield context
            patience_s = 120.0
        except EosctlError as exc:
            failed = master_error(exc, settings.effective_master(), log_file=settings.log_file, log_start=log_start)
            if failed is exc:
                raise
            raise failed from exc
        finally:
            try:
                with suppress(Py4JError):  # Ctrl-C may have cut off a call, and then the JVM answers no other
                    context.stop()
            finally:
                _end_jvm(gateway, patience_s=patience_s)
    archive = settings.class_archive()
    if archive is not None:
        archive.keep()


def _started(conf: SparkConf, log: IO[bytes], log_file: Path) -> tuple[Any, SparkContext]:
    """Start the JVM and its context; raises EosctlError if Spark does not start, with the reason from its log."""
    gateway, log_start = None, log.tell()
    _without_numpy()
    try:
        try:
            gateway = launch_gateway(conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
            return gateway, SparkContext(conf=conf, gateway=gateway)
        except (Py4JError, PySparkException, ValueError, OSError) as exc:
            raise start_error(exc, log_file=log_file, log_start=log_start) from exc  # in words that the JVM still has
    except BaseException:
        if gateway is not None:
            _end_jvm(gateway)
        raise


def _without_numpy() -> None:
    """Keep py4j from asking at each call whether an argument is one of numpy: none is here.

    To tell, pyspark 4.3 loads `pyspark.testing`, and so pandas where it is installed.
    """
    numpys = (NumpyArrayConverter, NumpyScalarConverter)
    INPUT_CONVERTER[:] = [each for each in INPUT_CONVERTER if not isinstance(each, numpys)]


def session_conf(settings: SessionSettings) -> dict[str, str]:
    """Return Spark's configuration for `settings`; writes the log4j2 file and the package zip that it names."""
    log4j = settings.work_dir / "log4j2.properties"
    log4j.write_text(_LOG4J)
    java_options = [f'"-Dlog4j2.configurationFile={log4j.as_uri()}"']
    # 2 to 4 s less to start, and slower per record that the JVM sees, which is none
    java_options += ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    archive = settings.class_archive()
    if archive is not None:
        java_options += [f'"{word}"' for word in archive.use() or archive.record()]
    ours = {
        "spark.master": settings.master,
        "spark.app.name": "eosctl offsets migrate",
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.extraJavaOptions": " ".join(java_options),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if settings.effective_master().startswith("local"):
        ours |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(settings.work_dir / "scratch"),
        }
    if settings.runs_installed():
        ours["spark.python.daemon.module"] = "eosctl.migrate.spark.daemon"
        ours |= _local_sockets(settings.work_dir)
    else:
        ours["spark.submit.pyFiles"] = str(package_zip(settings.work_dir))
    # A second copy of a writing task would fence the first one in the middle of its transaction, whoever wants it.
    return ours | dict(settings.conf) | {SPECULATION: "false"}


def _local_sockets(folder: Path) -> dict[str, str]:
    """Make JVM and Python use sockets in `folder`, which is its owner's alone: over TCP each task waits 40 ms.

    A JVM that someone else has started keeps the folder of its first context, which may be gone.
    """
    if "PYSPARK_GATEWAY_PORT" in os.environ or len(os.fsencode(folder)) + _SOCKET_NAME > _SOCKET_PATH:
        return {}
    name = "spark.python.unix.domain.socket"
    return {f"{name}.enabled": "true", f"{name}.dir": str(folder)}


def package_zip(work_dir: Path) -> Path:
    """Zip the parts of the installed package that run on executors, for `spark.submit.pyFiles`."""
    source = Path(eosctl.__file__).parent
    target = work_dir / "eosctl.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for modules in (
            source.glob("*.py"),
            *((source / room).rglob("*.py") for room in ("core", "engine", "migrate")),
        ):
            for module in sorted(modules):
                archive.write(module, Path("eosctl") / module.relative_to(source))
    return target


def _let_accumulators_end_alone(context: SparkContext) -> None:
    """Keep `context.stop` from waiting for pyspark's accumulator server, which checks once a second whether to end.

    `pyspark.accumulators.UpdateRequestHandler`, pyspark 4.3.
    """
    server: Any = context._accumulatorServer
    wait_for_end = server.shutdown
    server.shutdown = lambda: threading.Thread(target=wait_for_end, daemon=True).start()
    server.handle_error = lambda *_request: None  # the JVM hangs up meanwhile, which would be printed


def _end_jvm(gateway: Any, *, patience_s: float = 5.0) -> None:
    """End the JVM that `launch_gateway` started: it exits when its standard input closes, or is killed.

    The JVM of spark-submit is not ours and ends after us.
    """
    if gateway.proc is None:
        return
    with suppress(Py4JError):
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    gateway.proc.stdin.close()
    try:
        with suppress(subprocess.TimeoutExpired):
            gateway.proc.wait(timeout=patience_s)
    finally:  # Spark is stopped: there is nothing to lose
        gateway.proc.kill()
        gateway.proc.wait()


@contextmanager
def _environment(values: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables for the block, and remove those that are None: pyspark passes its own to the JVM."""
    before = {name: os.environ.get(name) for name in values}
    _set_environment(values)
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextmanager
def _quiet_logging() -> Iterator[None]:
    """Give the root logger a handler: py4j logs the call that Ctrl-C cut off there, else Python prints it."""
    nowhere = logging.NullHandler()
    logging.getLogger().addHandler(nowhere)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(nowhere)


@contextmanager
def _interrupt_handler_kept() -> Iterator[None]:
    """Restore the SIGINT handler that SparkContext replaces: its own calls py4j from inside a call, which fails."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
