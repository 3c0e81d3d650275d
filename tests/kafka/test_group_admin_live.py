"""Groups as librdkafka tells them, for logins that are not spoken natively, held against the native requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eosctl.app import App
from eosctl.core.clients.settings import ClientSettings
from eosctl.core.ids import TransactionalId
from eosctl.deadline import Deadline
from eosctl.errors import NoLoginError, UnsupportedError
from eosctl.fence.gather import FenceRequest
from eosctl.fence.plan import plan_fence
from eosctl.kafka.group_admin import LibrdkafkaGroupAdmin
from eosctl.kafka.transactions.admin import NativeTransactionAdmin
from eosctl.sandbox.settings import DEFAULT_GROUP
from eosctl.sandbox.stack import Stack
from eosctl.target import Target
from eosctl.txn.list import ListFilter, list_transactions
from tests.sandbox_fixtures import PATIENCE_S, wait_until


@pytest.mark.live
def test_a_connect_group_is_the_same_by_both(stack: Stack) -> None:
    """With GSSAPI nobody could say which tasks run: liveness was asked for natively only."""
    settings = ClientSettings(tuple(stack.bootstrap_servers.split(",")))
    deadline = Deadline.after(2 * PATIENCE_S)
    with (
        NativeTransactionAdmin(settings, deadline=deadline) as native,
        LibrdkafkaGroupAdmin(settings, deadline=deadline) as other,
    ):

        def is_the_same() -> bool:
            group = native.describe_group(DEFAULT_GROUP)
            return bool(group.members) and other.describe_group(DEFAULT_GROUP) == group

        wait_until(is_the_same, what="both to tell the same of a group that an earlier test may have left rebalancing")
        assert other.describe_group("nobody-knows-it") == native.describe_group("nobody-knows-it")
        assert other.list_groups()[DEFAULT_GROUP] == "connect"
        assert other.cluster_id() == native.cluster_id()


@pytest.fixture
def kerberos() -> App:
    settings = ClientSettings(("127.0.0.1:1",), security_protocol="SASL_PLAINTEXT", sasl_mechanism="GSSAPI")
    return App(Target(client=settings), Deadline.after(10), Path("unused"))


def test_gssapi_is_left_to_librdkafka_whose_wheel_has_none_and_what_to_do_is_said(kerberos: App) -> None:
    """It said "this librdkafka can't log in so: Failed to create admin client: No provider for SASL mechanism"."""
    with kerberos.transactions() as admin, pytest.raises(NoLoginError) as caught:
        admin.describe_group("g")
    assert "the Kafka client of this Python can't log in with SASL GSSAPI: the wheels of" in caught.value.message
    assert "--no-binary confluent-kafka confluent-kafka" in str(caught.value.hint)


@pytest.mark.parametrize("options", [{}, {"via": "producer", "create_unknown": True, "unknown_liveness": True}])
def test_a_fencing_that_no_client_can_log_in_for_ends_before_its_plan(kerberos: App, options: Any) -> None:
    """It was told to take --via producer, which failed id by id in librdkafka's own words."""
    with pytest.raises(NoLoginError, match="can't log in with SASL GSSAPI"):
        plan_fence(kerberos, FenceRequest((TransactionalId("x"),), **options))


def test_what_only_native_requests_can_ask_is_said_before_anything_is_connected(kerberos: App) -> None:
    """`txn list` advised --client-side, and first complained of a broker that it could not have asked."""
    with pytest.raises(UnsupportedError, match="can't ask about transactions with a login by SASL GSSAPI") as caught:
        list_transactions(kerberos, ListFilter())
    assert "Log in with SCRAM, PLAIN, OAUTHBEARER or a certificate" in str(caught.value.hint)
