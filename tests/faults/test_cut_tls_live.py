"""Connections over TLS and SCRAM that are cut between eosctl and a real broker, whichever of its clients made them.

`txn list` asks by eosctl's own connections, `offsets list` by librdkafka's too. The proxy ends TLS on both sides, so
that a cut is a reset without TLS's farewell.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.core.clients.properties import client_from_properties
from eosctl.core.ids import TransactionalId
from eosctl.core.java.properties import parse_properties
from eosctl.deadline import Clock, Deadline
from eosctl.kafka.transactions.admin import NativeTransactionAdmin
from tests.conftest import Invoke, Outcome
from tests.faults.proxy import Api, Cut, Fate, Proxy, Tls, at
from tests.kafka.connecting import CERTIFICATES
from tests.sandbox_fixtures import PATIENCE_S
from tests.secure_stack import LOGIN_LASTS_S, SecureStack

pytestmark = pytest.mark.live

OK, UNREACHABLE = 0, 4
CONNECTIONS = 500
COMMANDS = [("txn", "list"), ("offsets", "list")]
FAULTS: dict[str, dict[str, Any]] = {
    "after the handshake": {"cuts": [Cut(0)] * CONNECTIONS},
    "in the first answer": {"cuts": [Cut(2)] * CONNECTIONS},
    "in the login": {"on_request": at(Api.SASL_AUTHENTICATE, Fate.LOSE_ANSWER, *range(1, CONNECTIONS))},
}


@pytest.fixture
def tls(secure_stack: SecureStack) -> Tls:
    """The proxy has a certificate of the tests' own authority."""
    return Tls(CERTIFICATES / "server.pem", secure_stack.ca)


@pytest.fixture
def config(secure_stack: SecureStack, tmp_path: Path) -> str:
    """The settings of the super user, who trusts that authority."""
    path = secure_stack.client_properties(tmp_path / "client.properties", "super")
    path.write_text(path.read_text().replace(str(secure_stack.ca), str(CERTIFICATES / "ca.pem")))
    return str(path)


def run(invoke: Invoke, config: str, proxy: Proxy, *words: str) -> Outcome:
    done = invoke(*words, "-b", proxy.address, "--command-config", config, "--timeout", "30s", "-o", "json")
    assert "_ssl.c" not in done.stderr, "that is Python's own affair"
    return done


@pytest.mark.parametrize("words", COMMANDS)
def test_without_a_cut(
    secure_stack: SecureStack, invoke: Invoke, config: str, tls: Tls, words: tuple[str, ...]
) -> None:
    """The proxy itself is no obstacle."""
    with Proxy(secure_stack.stack.secure_bootstrap_servers, tls=tls) as proxy:
        assert run(invoke, config, proxy, *words).exit_code == OK
    assert proxy.requests[Api.SASL_AUTHENTICATE] > 0


def test_a_login_that_the_broker_ends_is_made_again_before(
    secure_stack: SecureStack, config: str, tls: Tls, unique: TransactionalId
) -> None:
    """connections.max.reauth.ms: the next request on the connection was cut off.

    The clock stands still between the requests, however long they take.
    """
    began_s, passed_s = time.time(), 0.0
    clock = replace(Clock(), now_s=lambda: began_s + passed_s)
    with Proxy(secure_stack.stack.secure_bootstrap_servers, tls=tls) as proxy:
        properties = parse_properties(Path(config).read_text(), source=config)
        settings = replace(client_from_properties(properties).settings, bootstrap_servers=(proxy.address,))
        with NativeTransactionAdmin(settings, deadline=Deadline.after(PATIENCE_S, clock)) as admin:
            logins = []
            for part in (0.0, 0.5, 0.9):
                passed_s = part * LOGIN_LASTS_S
                admin.describe_transactions([unique])
                logins.append(proxy.requests[Api.SASL_AUTHENTICATE])
    assert logins[0] == logins[1] < logins[2]


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_every_connection_is_cut(
    secure_stack: SecureStack, invoke: Invoke, config: str, tls: Tls, words: tuple[str, ...], fault: str
) -> None:
    with Proxy(secure_stack.stack.secure_bootstrap_servers, tls=tls, **FAULTS[fault]) as proxy:
        done = run(invoke, config, proxy, *words)
    assert proxy.cut > 0
    assert done.exit_code == UNREACHABLE, done.stderr
    assert {error["code"] for error in done.json()["errors"]} <= {"unreachable", "timed_out"}
    assert done.json()["data"].get("rows", []) == []


def test_the_answer_to_a_write_is_lost(
    secure_stack: SecureStack, invoke: Invoke, config: str, tls: Tls, unique: str
) -> None:
    ids = [f"{unique}-{number}" for number in range(20)]
    lost = at(Api.INIT_PRODUCER_ID, Fate.LOSE_ANSWER, 1)
    with Proxy(secure_stack.stack.secure_bootstrap_servers, on_request=lost, tls=tls) as proxy:
        done = run(invoke, config, proxy, "fence", *ids, "--create-unknown", "--yes")
    assert proxy.cut == 1
    assert done.exit_code == OK, done.stderr
    told = {row["transactional_id"]: row["after"]["producer_epoch"] for row in done.json()["data"]["rows"]}
    described = invoke("txn", "describe", *ids, "-b", secure_stack.stack.bootstrap_servers, "-o", "json").json()
    assert {row["transactional_id"]: row["producer_epoch"] for row in described["data"]["rows"]} == told
