"""Six kinds of healthy group, and more: no check of doctor says anything against them, with `--strict` neither."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.fakes.broker_state import FakeTransaction
from tests.fakes.config_topic import CONFIG_TOPIC, config_records, created
from tests.fakes.config_world import ConfigWorld, compacted
from tests.fakes.doctor_scene import OFFSETS, W1, W2, WHERE, cluster, later, transaction_topic
from tests.fakes.own_cluster import OWN_BROKERS, doors_to
from tests.fakes.world import STATUSES, World

DAY_S = 86_400
BALANCER = "https://connect.example:443"
TOPICS = [compacted(CONFIG_TOPIC, 1), compacted(OFFSETS, 25), compacted(STATUSES, 5), transaction_topic()]
Surroundings = dict[str, Any]


def idle_for_a_week() -> tuple[ConfigWorld, Surroundings]:
    """Its brokers have forgotten the transactional id."""
    there = cluster(described=TOPICS, known_ids=())
    later(there, 8 * DAY_S)
    return there, there.surroundings


def made_a_minute_ago() -> tuple[ConfigWorld, Surroundings]:
    there = cluster(described=TOPICS)
    later(there, 60)
    return there, there.surroundings


def sinks_only() -> tuple[ConfigWorld, Surroundings]:
    there = cluster(described=TOPICS, connectors={"files": "sink"}, records=config_records(*created("files", 1)))
    return there, there.surroundings


def mirror_maker() -> tuple[ConfigWorld, Surroundings]:
    """A dedicated one: no request reaches its workers."""
    there = cluster(modes={W1: "enabled", W2: "enabled"})
    there.connect.mirror_maker = True
    there.connect.down.update({W1, W2})
    return there, there.surroundings


def plain_mirror_maker() -> tuple[ConfigWorld, Surroundings]:
    """A dedicated one without exactly-once, which is the default: each of its tasks was an error, and exit 3.

    Its states are in its status topic.
    """
    config = {"connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector"}
    records = config_records(*created("MirrorSourceConnector", 1, config=config))
    connectors, configs = {"MirrorSourceConnector": "source"}, {"MirrorSourceConnector": config}
    there = cluster(
        described=TOPICS, modes={W1: "disabled"}, records=records, connectors=connectors, configs=configs, known_ids=()
    )
    there.topics.read(STATUSES)
    there.connect.mirror_maker = True
    there.connect.down.add(W1)
    return there, there.surroundings


def hosts_in_capitals() -> tuple[ConfigWorld, Surroundings]:
    """rest.advertised.host.name is as somebody wrote it."""
    there = cluster(described=TOPICS)
    orders = there.connect.connectors["orders"]
    orders.url = orders.tasks[0].url = W1.replace("w1", "W1")
    there.topics.read(STATUSES)
    later(there, 600)
    return there, there.surroundings


def several_groups() -> tuple[ConfigWorld, Surroundings]:
    """Each with a connector of the same name, and topics of its own."""
    there = cluster(described=TOPICS)
    there.other_group("g2", "http://w3:8083").add("orders")
    there.other_group("others", "http://w4:8083").add("bills")
    there.brokers.state.transactions |= {"g2-orders-0": FakeTransaction(7, 0), "others-bills-0": FakeTransaction(8, 0)}
    return there, there.surroundings


def own_brokers() -> tuple[ConfigWorld, Surroundings]:
    """The offsets topic of its connector is with them, as the config says."""
    config = {**OWN_BROKERS, "offsets.storage.topic": "own-offsets"}
    elsewhere = World(cluster_id="own-cluster")
    elsewhere.brokers.state.add_topic("own-offsets", 25, {"cleanup.policy": "compact"}, replication_factor=3)
    elsewhere.brokers.state.transactions["g-orders-0"] = FakeTransaction(1, 0)
    records = config_records(*created("orders", 1, record=1, config=config))
    there = cluster(described=TOPICS, known_ids=(), records=records, configs={"orders": config})
    surroundings = there.surroundings
    return there, {**surroundings, "doors": {**surroundings["doors"], **doors_to(there, elsewhere)}}


def behind_a_balancer() -> tuple[ConfigWorld, Surroundings]:
    """Its address, which one of the members answers, is what -u names."""
    there = cluster(described=TOPICS, modes={W1: "enabled", W2: "enabled"})
    there.connect.forwarded[BALANCER.removesuffix(":443")] = W1
    there.connect.forwarded[BALANCER] = W1
    return there, there.surroundings


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (idle_for_a_week, ()),
        (made_a_minute_ago, ()),
        (sinks_only, ()),
        (mirror_maker, ()),
        (plain_mirror_maker, ()),
        (hosts_in_capitals, ()),
        (several_groups, ()),
        (own_brokers, ()),
        (behind_a_balancer, ("-u", BALANCER)),
    ],
)
def test_a_healthy_group_has_no_finding(
    invoke: Invoke, kind: Callable[[], tuple[ConfigWorld, Surroundings]], words: tuple[str, ...]
) -> None:
    _there, surroundings = kind()
    outcome = invoke("doctor", "--strict", *WHERE, *words, "-o", "json", **surroundings)
    document = envelope_of(outcome, "doctor", 0)
    assert {row["severity"] for row in document["data"]["rows"]} == {"info"}
    assert document["data"]["unseen"] == []


def test_the_ids_of_tasks_that_were_idle_for_a_week_are_not_waited_for(invoke: Invoke) -> None:
    """Each look took five seconds longer, for a task that may just have started."""
    there, surroundings = idle_for_a_week()
    began_s = there.time.now_s
    assert invoke("doctor", *WHERE, **surroundings).exit_code == 0
    assert there.time.now_s - began_s < 2
