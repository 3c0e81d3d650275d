"""What gates about topics, clusters and connectors tell to do, and what they say of what nobody could see."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.core.clients.own_brokers import one_partition, only_compacted
from eosctl.core.clients.settings import ClientSettings
from eosctl.group.observation.rules import CONNECTOR_STATES, Observation
from eosctl.upgrade.gate import Gate
from eosctl.upgrade.gates import evaluate_gates
from tests.group.observations import good, source, topic

CLIENT = ClientSettings(("far:9092",))


def gate(gate_id: str, seen: Observation) -> Gate:
    return {str(each.id): each for each in evaluate_gates(seen)}[gate_id]


@pytest.mark.parametrize(("gate_id", "name"), [("config_topic", "configs"), ("offset_topic", "offsets")])
def test_a_topic_that_is_not_compacted_comes_with_the_line_that_makes_it_so(gate_id: str, name: str) -> None:
    """For its cluster; where nobody may read the settings, that line would be a guess."""
    seen = replace(good(), client=CLIENT)
    deleting = gate(gate_id, replace(seen, topics={name: topic(name, policy="delete")}))
    assert (deleting.status, deleting.fix) == ("fail", only_compacted(name, CLIENT))
    unread = gate(gate_id, replace(seen, topics={name: topic(name, policy=None)}))
    assert (unread.status, unread.fix) == ("unknown", unread.id.next)


def test_a_config_topic_of_two_partitions_comes_with_the_way_to_one() -> None:
    two = topic("configs", partitions=2, policy="delete")
    found = gate("config_topic", replace(good(), client=CLIENT, topics={"configs": two}))
    assert found.fix == one_partition(two, CLIENT)
    assert found.evidence.count("workers do not start on it") == 2


def test_a_mirror_makers_members_on_two_clusters_are_no_group() -> None:
    seen = replace(good(), mirror_maker=True, cluster_ids={"w0": "k", "w1": "other"})
    assert (gate("same_kafka_cluster", seen).status, gate("same_kafka_cluster", seen).evidence) == (
        "fail", "w1 works on cluster other",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("connectors", "status", "evidence"),
    [
        (source(states={}), "unknown", "the state of c is not known: nobody told"),
        ((*source(states={}), *source(name="d", states={"task 0": "FAILED"})), "fail",
         "d task 0 is FAILED; the state of c is not known: nobody told"),
    ],
)  # fmt: skip
def test_a_connector_whose_state_nobody_tells_is_not_called_well(connectors: Any, status: str, evidence: str) -> None:
    seen = replace(good(), connectors=connectors).without([CONNECTOR_STATES], "nobody told")
    found = gate("connectors_healthy", seen)
    assert (found.status, found.evidence) == (status, evidence)
