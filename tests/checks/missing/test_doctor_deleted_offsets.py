"""What `eosctl doctor` and `offsets lint` say of offsets that went with the start of their topic."""

from __future__ import annotations

from typing import Any

import pytest

from eosctl.core.offsets.names import partition_for
from eosctl.core.records import Record
from eosctl.errors import UnauthorizedError
from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.fakes.config_topic import CONFIG_TOPIC, config_records, created
from tests.fakes.config_world import ConfigWorld, compacted
from tests.fakes.doctor_scene import OFFSETS, W1, WHERE, cluster, doctor, row_of, transaction_topic
from tests.fakes.doctor_scene import found as codes_of

CODE, START = "offsets_deleted", "oldest_deleted"
KEY, OWN = b'["orders",{"filename":"/f"}]', "own-orders"


def scene(
    *offsets: Record, begin: int = 5, topic: str = OFFSETS, state: str = "CompleteCommit", **changes: Any
) -> ConfigWorld:
    """orders has committed, and the first records of partition 3 of an offsets topic are gone."""
    described = [compacted(CONFIG_TOPIC, 1), compacted(OFFSETS, 25), compacted(OWN, 25), transaction_topic()]
    there = cluster(**{"offsets": offsets, "described": described, **changes})
    known = there.brokers.state.transactions.get("g-orders-0")
    if known is not None:
        known.state, known.started_ms = state, there.clock().now_ms()
    cut(there, topic, begin)
    return there


def cut(there: ConfigWorld, topic: str, begin: int) -> None:
    if begin:
        for _ in range(begin):
            there.topics.put(topic, b'["gone",{}]', b"{}", partition=3)
        there.topics.named(topic).partitions[3].delete_before(begin)


def rows(invoke: Invoke, there: ConfigWorld, code: str) -> list[dict[str, Any]]:
    every = doctor(invoke, there, "-o", "json").json()["data"]["rows"]
    return [row for row in every if row["code"] == code]


def offset(value: bytes | None) -> Record:
    return Record(OFFSETS, partition_for(KEY, 25), 0, 0, KEY, value)


def test_a_connector_that_lost_its_offsets_is_named_before_all_that_restarts(invoke: Invoke) -> None:
    """doctor, lint and `offsets list` were silent once the policy was right again, and a resume read all anew."""
    there = scene()
    there.connect.connectors["orders"].state = "STOPPED"
    document = envelope_of(doctor(invoke, there, "-o", "json"), "doctor", 3)
    first = document["data"]["rows"][0]
    assert (first["check"], first["code"], first["severity"], first["subject"]) == ("offsets", CODE, "error", "orders")
    assert first["fix"].startswith("Do not resume or restart orders before its offsets are back")
    lint = envelope_of(
        invoke("offsets", "lint", *WHERE, "-u", W1, "-o", "json", **there.surroundings), "offsets-lint", 3
    )
    assert {CODE, START} <= {row["code"] for row in lint["data"]["rows"]}


def test_the_start_of_a_topic_alone_only_informs(invoke: Invoke) -> None:
    there = scene(offset(b'{"position":5}'))
    row = row_of(invoke, there, START)
    assert (row["severity"], row["subject"], row["evidence"]["begin_offsets"]) == ("info", OFFSETS, {"3": 5})
    assert rows(invoke, there, CODE) == []
    assert codes_of(invoke, there, 0)


def test_a_topic_that_is_whole_says_nothing(invoke: Invoke) -> None:
    """A connector whose source was always empty has no offset either."""
    there = scene(begin=0)
    assert rows(invoke, there, CODE) == rows(invoke, there, START) == []


def test_one_that_was_reset_still_has_its_deletion(invoke: Invoke) -> None:
    assert rows(invoke, scene(offset(None)), CODE) == []


@pytest.mark.parametrize("state", ["Empty", "CompleteAbort"])
def test_whether_it_has_committed_may_not_be_known(invoke: Invoke, state: str) -> None:
    there = scene(state=state)
    assert row_of(invoke, there, CODE)["severity"] == "warning"


def test_one_that_never_ran_exactly_once_is_not_judged(invoke: Invoke) -> None:
    there = scene(records=config_records(*created("orders", 1)))
    assert rows(invoke, there, CODE) == []


def test_a_sink_has_no_offsets_there(invoke: Invoke) -> None:
    records = config_records(*created("orders", 1, record=1, config={"connector.class": "FileStreamSink"}))
    there = scene(records=records, connectors={"orders": "sink"}, known_ids=["g-orders-0"])
    assert rows(invoke, there, CODE) == []


def test_checkpoints_have_no_offset_without_consumer_groups(invoke: Invoke) -> None:
    records = config_records(*created("orders", 1, record=1, config={"connector.class": "MirrorCheckpointConnector"}))
    assert rows(invoke, scene(records=records, state="Empty"), CODE) == []


def test_a_topic_of_its_own_is_what_counts(invoke: Invoke) -> None:
    config = {"offsets.storage.topic": OWN}
    records = config_records(*created("orders", 1, record=1, config=config))
    whole = scene(records=records, configs={"orders": config})
    assert rows(invoke, whole, CODE) == []
    there = scene(records=records, configs={"orders": config}, topic=OWN)
    row = row_of(invoke, there, CODE)
    assert (row["severity"], row["evidence"]["topic"]) == ("error", OWN)


def test_coordinators_that_may_not_be_asked_are_said(invoke: Invoke) -> None:
    there = scene()
    there.brokers.calls.fail_always("describe_transactions", UnauthorizedError("not allowed"))
    messages = {
        row["message"]
        for row in doctor(invoke, there, "-o", "json").json()["data"]["rows"]
        if row["check"] == "offsets"
    }
    assert "not allowed" in messages
