"""Groups as librdkafka tells them, for logins that are not spoken natively, held against the native requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from eosctl.core.client_settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.errors import UnsupportedError
from eosctl.kafka.group_admin import LibrdkafkaGroupAdmin
from eosctl.kafka.transaction_admin import NativeTransactionAdmin
from eosctl.ops.app import App
from eosctl.profiles import Target
from eosctl.sandbox.settings import DEFAULT_GROUP
from eosctl.sandbox.stack import Stack


@pytest.mark.live
def test_a_connect_group_is_the_same_by_both(stack: Stack) -> None:
    """With GSSAPI nobody could say which tasks run: liveness was asked for natively only."""
    settings = ClientSettings(tuple(stack.bootstrap_servers.split(",")))
    deadline = Deadline.after(60)
    with (
        NativeTransactionAdmin(settings, deadline=deadline) as native,
        LibrdkafkaGroupAdmin(settings, deadline=deadline) as other,
    ):
        group = native.describe_group(DEFAULT_GROUP)
        assert group.members
        assert other.describe_group(DEFAULT_GROUP) == group
        assert other.describe_group("nobody-knows-it") == native.describe_group("nobody-knows-it")
        assert other.list_groups()[DEFAULT_GROUP] == "connect"
        assert other.cluster_id() == native.cluster_id()


def test_gssapi_is_left_to_librdkafka() -> None:
    """The one in the wheel has no Kerberos, and says so itself."""
    settings = ClientSettings(("127.0.0.1:1",), security_protocol="SASL_PLAINTEXT", sasl_mechanism="GSSAPI")
    app = App(Target(client=settings), Deadline.after(10), Path("unused"))
    with app.transactions() as admin, pytest.raises(UnsupportedError, match="No provider for SASL mechanism GSSAPI"):
        admin.describe_group("g")
