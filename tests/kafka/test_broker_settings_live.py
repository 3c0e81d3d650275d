"""What brokers say of their own settings, where there is more than one broker."""

from __future__ import annotations

import pytest

from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.sandbox.stack import Stack

pytestmark = pytest.mark.live


def test_every_one_of_three_brokers_tells_its_settings(three_brokers: Stack) -> None:
    """librdkafka takes one broker a call: with two it refused, no gate was told, and `upgrade verify` never passed."""
    settings = ClientSettings(tuple(three_brokers.bootstrap_servers.split(",")))
    with KafkaTopicClient(settings, deadline=Deadline.after(120)) as store:
        found = store.broker_settings("transaction.max.timeout.ms")
    assert found == {1: "900000", 2: "900000", 3: "900000"}
