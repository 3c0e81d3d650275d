"""What the makers of traces share: where a trace is written, what Java says of a failure, what a log says."""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from eosctl.sandbox.settings import logging_files
from eosctl.sandbox.stack import Stack
from tests.applications.jvm import properties

_HARNESS = re.compile(r"\s+at (?:java\.base/)?(?:jdk\.internal\.reflect|java\.lang\.reflect\.Method|py4j)\.")
_FLINKS_PATTERN = "%d{yyyy-MM-dd HH:mm:ss,SSS} %-5p %-60c %x - %m%n"
_CONNECTS_PATTERN = "[%d] %p %X{connector.context}%m (%c:%L)%n"


class Traces:
    """A folder in which a maker leaves its traces; the machine's paths become `/data`."""

    def __init__(self, folder: Path, machine: Iterable[Path]) -> None:
        self._folder, self._machine = folder, [str(path) for path in machine]

    def write(self, name: str, text: str) -> None:
        """Keeps a trace."""
        for path in self._machine:
            text = text.replace(path, "/data")
        (self._folder / name).write_text(text.rstrip() + "\n", encoding="utf-8")


@contextmanager
def failing() -> Iterator[list[Any]]:
    """The Java exception of the block, which must have one."""
    caught: list[Any] = []
    try:
        yield caught
    except Py4JJavaError as error:
        caught.append(error.java_exception)
    else:
        raise AssertionError("nothing was thrown")


def trace_of(java: Any, exception: Any) -> str:
    """What `printStackTrace` prints, without the frames of py4j, which called the method."""
    text = java.java.io.StringWriter()
    exception.printStackTrace(java.java.io.PrintWriter(text))
    lines = str(text.toString()).splitlines()
    return "\n".join(line for line in lines if not _HARNESS.match(line))


def producer(java: Any, stack: Stack, transactional_id: str, **more: str) -> Any:
    """A KafkaProducer of text that has called initTransactions."""
    made = java.org.apache.kafka.clients.producer.KafkaProducer(
        client(java, stack, transactional_id=transactional_id, **more)
    )
    made.initTransactions()
    return made


def client(java: Any, stack: Stack, **more: str) -> Any:
    """The settings of a client of text."""
    text = "org.apache.kafka.common.serialization.String"
    return properties(
        java, bootstrap_servers=stack.bootstrap_servers, key_serializer=f"{text}Serializer",
        value_serializer=f"{text}Serializer", key_deserializer=f"{text}Deserializer",
        value_deserializer=f"{text}Deserializer", **more,
    )  # fmt: skip


def record(java: Any, topic: str, value: str = "line") -> Any:
    """A ProducerRecord without a key."""
    return java.org.apache.kafka.clients.producer.ProducerRecord(topic, value)


def abort_behind_its_back(java: Any, stack: Stack, transactional_id: str) -> None:
    """EndTxn v1 with the producer id and epoch of the open transaction, as a delayed request has them."""
    admin = java.org.apache.kafka.clients.admin.Admin.create(client(java, stack))
    try:
        told = admin.describeTransactions([transactional_id]).description(transactional_id).get()
        body = struct.pack(">h", len(transactional_id)) + transactional_id.encode()
        body += struct.pack(">qhb", told.producerId(), told.producerEpoch(), 0)
        host, port = stack.bootstrap_servers.split(",")[0].rsplit(":", 1)
        request = struct.pack(">hhih", 26, 1, 1, 4) + b"late" + body
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            answer = connection.recv(64)
        assert answer[-2:] == b"\0\0", answer
    finally:
        admin.close()


def logging_option(folder: Path, version: str, level: str = "info", *, flinks: bool = False) -> str:
    """A JVM option for a log on the console, in the pattern of Flink's or of Connect's files."""
    name, _text, option = logging_files(version)
    pattern = _FLINKS_PATTERN if flinks else _CONNECTS_PATTERN
    if name.startswith("log4j2"):
        text = f"""rootLogger.level={level}
rootLogger.appenderRef.stdout.ref=stdout
appender.stdout.type=Console
appender.stdout.name=stdout
appender.stdout.layout.type=PatternLayout
appender.stdout.layout.pattern={pattern}
"""
    else:
        text = f"""log4j.rootLogger={level.upper()}, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern={pattern}
"""
    (folder / name).write_text(text, encoding="utf-8")
    return f"{option}{(folder / name).as_uri()}"


def lines_with(log: Path, *words: str, after: int = 0) -> list[str]:
    """The lines of a log that have one of the words."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line for line in lines if any(word in line for word in words)][after:]


def events_with(log: Path, *words: str) -> list[str]:
    """The records of a log that have one of the words, each with its stack trace."""
    records = re.split(r"\n(?=\[?\d{4}-\d\d-\d\d)", log.read_text(encoding="utf-8", errors="replace"))
    return [each for each in records if any(word in each for word in words)]


def log_of(stack: Stack, name: str) -> Path:
    """The log of a node of the stack."""
    return Path(stack.node(name).log)


Maker = Callable[[Traces, Path], None]
