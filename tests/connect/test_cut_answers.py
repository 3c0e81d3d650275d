"""Answers of a worker that break off, over TLS: exit code 4, and never a value that is only half there."""

from __future__ import annotations

import pytest

from eosctl.connect.rest import RestConnectWorker
from eosctl.core.workers.access import ConnectAccess
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError, ExitCode, UnreachableError
from tests.fakes.clock import PLENTY_S
from tests.kafka.connecting import CERTIFICATES, server_that_says, tls_server_that_breaks_off

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
ACCESS = ConnectAccess(ca=str(CERTIFICATES / "ca.pem"))


def ask(url: str) -> EosctlError:
    worker = RestConnectWorker(url, deadline=Deadline.after(PLENTY_S), access=ACCESS)
    with pytest.raises(EosctlError) as caught:
        worker.root()
    return caught.value


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 20",
        HEAD + b'Content-Length: 90\r\n\r\n{"version"',
        HEAD + b'Transfer-Encoding: chunked\r\n\r\n40\r\n{"version"',
        HEAD + b'Transfer-Encoding: chunked\r\n\r\na\r\n{"version"\r\n',
        HEAD + b'\r\n{"version"',
        HEAD + b"\r\n",
    ],
)
def test_in_the_middle_of_an_answer(answer: bytes) -> None:
    """It used to ask for a client certificate, or, where no length was told, for another port."""
    with tls_server_that_breaks_off(answer, reset=False) as address:
        found = ask(f"https://{address}")
    assert isinstance(found, UnreachableError)
    assert found.message == f"the Connect worker at https://{address} broke off its answer"
    assert "may be done all the same" in str(found.hint)
    with server_that_says(answer) as address:
        assert ask(f"http://{address}").message == f"the Connect worker at http://{address} broke off its answer"


@pytest.mark.parametrize("reset", [True, False])
def test_after_the_handshake(reset: bool) -> None:
    with tls_server_that_breaks_off(b"", reset=reset) as address:
        found = ask(f"https://{address}")
    assert found.exit_code is ExitCode.UNREACHABLE
    assert "--connect-certificate" in str(found.hint)


def test_a_reset_within_an_answer() -> None:
    """What had arrived may be lost with the connection, so that either may be seen."""
    with tls_server_that_breaks_off(HEAD + b"Content-Length: 90\r\n\r\n{", reset=True) as address:
        assert ask(f"https://{address}").exit_code is ExitCode.UNREACHABLE
