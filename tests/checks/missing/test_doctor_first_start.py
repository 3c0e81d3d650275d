"""A config topic with several partitions, on which no worker starts: it is named first, its consequences below."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.fakes.config_topic import CONFIG_TOPIC
from tests.fakes.config_world import ConfigWorld, compacted
from tests.fakes.doctor_scene import OFFSETS, W1, cluster, doctor, transaction_topic, write_worker_file


def never_started(partitions: int = 3) -> ConfigWorld:
    """Nothing but the topics is there: each worker died at its first start."""
    described = [compacted(CONFIG_TOPIC, partitions), compacted(OFFSETS, 25), transaction_topic()]
    there = cluster(described=described, records=(), connectors={}, known_ids=())
    there.connect.stop_worker(W1)
    there.connect.forgotten = True
    return there


@pytest.mark.parametrize("named", ["by its group", "by a file"])
def test_it_is_named_first(invoke: Invoke, tmp_path: Path, named: str) -> None:
    """With -b, -g and --config-topic "the group does not exist" was all, and with -w two consequences came first."""
    more = ("-w", str(write_worker_file(tmp_path / "w.properties"))) if named == "by a file" else ()
    document = envelope_of(doctor(invoke, never_started(), *more, "-o", "json"), "doctor", 3)
    first, *rest = document["data"]["rows"]
    assert (first["code"], first["severity"]) == ("config_topic", "error")
    assert "group_stable" in {each["code"] for each in first["evidence"]["follows"]}
    assert not {"members_known", "group_stable"} & {row["code"] for row in rest}


def test_a_group_that_was_never_there_is_not_found_beside_a_good_topic(invoke: Invoke) -> None:
    assert doctor(invoke, never_started(1)).exit_code == 1


def test_a_group_with_members_has_its_gates_by_themselves(invoke: Invoke) -> None:
    """They started while it had one partition: whatever else is wrong with them is no consequence."""
    there = cluster(described=[compacted(CONFIG_TOPIC, 3), compacted(OFFSETS, 25), transaction_topic()])
    there.connect.rebalance(1000)
    codes = {row["code"] for row in doctor(invoke, there, "-o", "json").json()["data"]["rows"]}
    assert {"config_topic", "group_stable"} <= codes
