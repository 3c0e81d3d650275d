"""Whether every broker has heard of a topic: the next question may go to any of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eosctl.core.clients.settings import ClientSettings
from eosctl.deadline import Deadline
from eosctl.kafka.topics.partition_leaders import TopicSpread
from tests.fakes.broker import FakeCluster
from tests.fakes.clock import PLENTY_S


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    """Three brokers, and topic t with two partitions."""
    with FakeCluster(brokers=3) as cluster:
        cluster.state.add_topic("t", 2)
        yield cluster


@pytest.fixture
def spread(cluster: FakeCluster) -> Iterator[TopicSpread]:
    spread = TopicSpread(ClientSettings(cluster.bootstrap_servers), deadline=Deadline.after(PLENTY_S))
    yield spread
    spread.close()


def test_all_brokers_know_of_it(spread: TopicSpread) -> None:
    assert spread.known_everywhere({"t": 2})


@pytest.mark.parametrize("node", [1, 2, 3])
def test_one_broker_has_not_heard_of_it(cluster: FakeCluster, spread: TopicSpread, node: int) -> None:
    """A description right after the creation of a topic told on three brokers, now and then, that there is none."""
    cluster.unaware[node] = {"t"}
    assert not spread.known_everywhere({"t": 2})
    cluster.unaware.clear()
    assert spread.known_everywhere({"t": 2})


def test_a_partition_is_missing(spread: TopicSpread) -> None:
    assert not spread.known_everywhere({"t": 3})


def test_a_topic_that_may_not_be_described_is_not_waited_for(cluster: FakeCluster, spread: TopicSpread) -> None:
    cluster.deny_topics.add("t")
    assert spread.known_everywhere({"t": 2})


def test_a_broker_that_answers_nothing_is_not_waited_for(cluster: FakeCluster, spread: TopicSpread) -> None:
    assert spread.known_everywhere({"t": 2})
    cluster.stop_broker(2)
    cluster.state.nodes.append(2)
    assert spread.known_everywhere({"t": 2})


def test_where_the_native_client_cannot_log_in_nothing_is_waited_for(cluster: FakeCluster) -> None:
    settings = ClientSettings(
        cluster.bootstrap_servers, security_protocol="SASL_PLAINTEXT", sasl_mechanism="GSSAPI", sasl_username="u"
    )
    spread = TopicSpread(settings, deadline=Deadline.after(PLENTY_S))
    assert spread.known_everywhere({"t": 2})
    spread.close()
