"""One of three brokers hangs: it takes connections, and answers nothing."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.kafka.topics.store import KafkaTopicClient
from eosctl.sandbox.servers import process
from eosctl.sandbox.stack import Stack
from tests.sandbox_fixtures import wait_until_as_before

pytestmark = pytest.mark.live
CLIENTS = 40


def test_nobody_waits_for_the_broker_that_hangs(three_brokers: Stack, unique: str) -> None:
    """One command in ten waited for it in vain: "Failed while waiting for controller", with two brokers well."""
    settings = ClientSettings(tuple(three_brokers.bootstrap_servers.split(",")))

    def partitions(_client: int) -> int:
        with KafkaTopicClient(settings, deadline=Deadline.after(60)) as store:
            return store.describe([unique], configs=False)[unique].partitions

    with KafkaTopicClient(settings, deadline=Deadline.after(60)) as store:
        store.create(unique, partitions=5, replication_factor=1, config={})
    hanging = three_brokers.node("broker-3").process
    process.signal_group(hanging, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(CLIENTS) as clients:
            assert list(clients.map(partitions, range(CLIENTS))) == [5] * CLIENTS
    finally:
        process.signal_group(hanging, signal.SIGCONT)
        wait_until_as_before(three_brokers)
