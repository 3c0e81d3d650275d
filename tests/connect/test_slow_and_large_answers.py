"""Answers that drip, do not end, or are small only on the wire: clients read them within their deadline and a size."""

from __future__ import annotations

import gzip
import io
import itertools
from collections.abc import Callable, Iterable

import pytest
import urllib3

from eosctl.connect.metrics import MetricsClient
from eosctl.connect.rest import RestConnectWorker
from eosctl.core.workers.access import ConnectAccess
from eosctl.deadline import Deadline
from eosctl.errors import ConnectError, DeadlineError, EosctlError, UnreachableError
from eosctl.machine.answers import AnswerTooLargeError, EncodedAnswerError, read_answer
from tests.fakes.clock import PLENTY_S
from tests.fakes.dripping import answering

DEADLINE_S = 0.5
ROOT = b'{"version":"4.3.1","commit":"x","kafka_cluster_id":"c"}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"


def of_worker(url: str, timeout_s: float = PLENTY_S) -> object:
    return RestConnectWorker(url, deadline=Deadline.after(timeout_s)).root()


def of_metrics(url: str, timeout_s: float = PLENTY_S) -> object:
    return MetricsClient(Deadline.after(timeout_s), ConnectAccess()).read_prometheus(f"{url}/metrics")


def dripping_body() -> Iterable[bytes]:
    yield HEAD + b"Content-Length: 60000\r\n\r\n"
    yield from itertools.repeat(b" ", 60_000)


def dripping_headers() -> Iterable[bytes]:
    yield b"HTTP/1.1 200 OK\r\nX: "
    yield from itertools.repeat(b"y", 60_000)


def dripping_continues() -> Iterable[bytes]:
    while True:
        yield b"HTTP/1.1 100 Continue\r\n\r\n"


def dripping_chunks() -> Iterable[bytes]:
    yield HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    while True:
        yield b"1\r\n \r\n"


def endless() -> Iterable[bytes]:
    yield HEAD + b"\r\n"
    while True:
        yield b" " * 65536


@pytest.mark.timeout(PLENTY_S)
@pytest.mark.parametrize("ask", [of_worker, of_metrics])
@pytest.mark.parametrize("pieces", [dripping_body, dripping_headers, dripping_continues, dripping_chunks])
def test_a_byte_now_and_then_keeps_nobody_past_the_deadline(
    ask: Callable[[str, float], object], pieces: Callable[[], Iterable[bytes]]
) -> None:
    """Each byte began the wait anew: 27 s with a deadline of 3 s. None of these ends by itself."""
    with answering(pieces, pause_s=0.1) as url, pytest.raises((UnreachableError, DeadlineError)):
        ask(url, DEADLINE_S)


@pytest.mark.timeout(PLENTY_S)
@pytest.mark.parametrize("ask", [of_worker, of_metrics])
def test_an_answer_without_an_end_ends_with_the_deadline(ask: Callable[[str, float], object]) -> None:
    """It took all memory."""
    with answering(endless, pause_s=0.01) as url, pytest.raises(EosctlError):
        ask(url, DEADLINE_S)


def response(body: bytes, **headers: str) -> urllib3.HTTPResponse:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return urllib3.HTTPResponse(io.BytesIO(body), named, preload_content=False)


def test_an_answer_is_read_up_to_its_size_packed_or_not() -> None:
    """800 MB were 815 kB on the wire."""
    whole, packed = b"x" * 1000, gzip.compress(b"x" * 1000)
    assert len(packed) < 100
    assert read_answer(response(whole), most_bytes=1000) == whole
    assert read_answer(response(packed, Content_Encoding="gzip"), most_bytes=1000) == whole
    for answer in (response(whole), response(packed, Content_Encoding="gzip")):
        with pytest.raises(AnswerTooLargeError):
            read_answer(answer, most_bytes=999)


@pytest.mark.parametrize(
    ("body", "encoding"),
    [(b"x", "br"), (b"x", "zstd"), (b"x", "gzip, gzip"), (b"no gzip", "gzip"), (gzip.compress(ROOT)[:-9], "gzip")],
)
def test_an_encoding_that_can_not_be_undone_is_no_answer(body: bytes, encoding: str) -> None:
    with pytest.raises(EncodedAnswerError):
        read_answer(response(body, Content_Encoding=encoding))
    head = HEAD + b"Content-Encoding: %s\r\nContent-Length: %d\r\n\r\n" % (encoding.encode(), len(body))
    with answering(lambda: [head + body]) as url:
        for ask in (of_worker, of_metrics):
            with pytest.raises(ConnectError):
                ask(url)


def test_a_proxy_that_packs_answers_is_understood() -> None:
    packed = gzip.compress(ROOT)
    head = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    with answering(lambda: [head + packed]) as url:
        assert of_worker(url) == {"version": "4.3.1", "commit": "x", "kafka_cluster_id": "c"}
