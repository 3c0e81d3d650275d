"""What `eosctl doctor` finds of offsets that tasks do not see or that went back; the printed commands heal it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from eosctl.core.offsets.names import partition_for
from eosctl.core.records import OutRecord, Record
from tests.conftest import Invoke
from tests.envelope import envelope_of
from tests.fakes.config_topic import CONFIG_TOPIC, config_records, created
from tests.fakes.config_world import ConfigWorld, compacted
from tests.fakes.connectors import FILE_SOURCE
from tests.fakes.doctor_scene import HEALTHY, OFFSETS, W1, WHERE, cluster, doctor, found, run_fix, transaction_topic
from tests.fakes.faults import Call

OWN = "a-orders-offsets"
FENCED = "org.apache.kafka.common.errors.ProducerFencedException: There is a newer producer"
MEANT = "If somebody meant it"
KEY, OTHER, THIRD = (f'["orders",{{"filename":"{name}"}}]'.encode() for name in ("/f o", "/g", "/h"))


def at(position: int) -> bytes:
    return f'{{"position":{position}}}'.encode()


def offset(key: bytes, value: bytes | None, topic: str = OFFSETS) -> Record:
    return Record(topic, partition_for(key, 25), 0, 0, key, value)


def scene(*offsets: Record, own: bool = False, **changes: Any) -> ConfigWorld:
    """The healthy cluster with these offsets; the connector may have a topic of its own."""
    described = [compacted(CONFIG_TOPIC, 1), compacted(OFFSETS, 25), transaction_topic()]
    config = {"offsets.storage.topic": OWN, "connector.class": FILE_SOURCE}
    records = config_records(*created("orders", 1, record=1, config=config if own else {}))
    if own:
        changes = {"described": [*described, compacted(OWN, 25)], "configs": {"orders": config}, **changes}
    return cluster(**{"offsets": offsets, "records": records, **changes})


def rows(invoke: Invoke, there: ConfigWorld, exit_code: int = 3) -> list[Mapping[str, Any]]:
    document = envelope_of(doctor(invoke, there, "-o", "json"), "doctor", exit_code)
    found: list[Mapping[str, Any]] = document["data"]["rows"]
    return found


def test_offsets_that_tasks_would_not_see_come_before_all_that_restarts(invoke: Invoke) -> None:
    """`offsets list` showed "not seen at runtime: 2 of 3", doctor said all is well, and a restart read the source."""
    there = scene(offset(KEY, at(5)), offset(OTHER, at(6)), own=True)
    there.topics.put(OWN, THIRD, at(7))
    task = there.connect.connectors["orders"].tasks[0]
    task.state, task.trace = "FAILED", FENCED
    first, *rest = rows(invoke, there)
    assert (first["check"], first["code"], first["severity"]) == ("offsets", "offsets_hidden", "error")
    assert first["message"] == (
        "orders: 2 of 3 offsets not seen at runtime: connect-offsets has what its own topic a-orders-offsets lacks, "
        "and tasks that start read that from the beginning"
    )
    assert first["fix"] == (
        "Before any restart: `eosctl connectors stop orders`, `eosctl offsets merge --connector orders --into "
        "dedicated`, `eosctl connectors resume orders`."
    )
    assert [row["code"] for row in rest if "restart --failed orders" in row["fix"]], (
        "else nothing is proven about the order"
    )


def test_the_merge_that_is_printed_heals_it(invoke: Invoke) -> None:
    there = scene(offset(KEY, at(5)), own=True)
    there.topics.put(OWN, OTHER, at(6))
    [row] = [row for row in rows(invoke, there) if row["severity"] == "error"]
    run_fix(invoke, there, row, until=MEANT)
    assert found(invoke, there, 0) == HEALTHY
    assert there.topics.newest(OWN) == {KEY: at(5), OTHER: at(6)}


def test_a_topic_that_was_deleted_and_made_anew(invoke: Invoke) -> None:
    """Every check looked well: the topic was there, compacted, with 25 partitions; and empty."""
    there = scene(offset(KEY, at(5)), own=True)
    row = rows(invoke, there)[0]
    assert (row["code"], row["severity"], row["subject"]) == ("offsets_topic_empty", "error", "orders")
    assert "its own topic a-orders-offsets is empty, it was deleted and recreated, or never filled" in row["message"]
    run_fix(invoke, there, row, until=MEANT)
    assert found(invoke, there, 0) == HEALTHY


def test_a_topic_that_is_not_there_hides_all(invoke: Invoke) -> None:
    there = scene(offset(KEY, at(5)), own=True, described=[compacted(CONFIG_TOPIC, 1), compacted(OFFSETS, 25)])
    assert ("offsets", "offsets_hidden", "error") in found(invoke, there, 3)


@pytest.mark.parametrize(
    "offsets",
    [
        [],
        [offset(KEY, None)],
        [offset(b'["gone",{"filename":"/f"}]', at(5))],
    ],
)
def test_an_empty_topic_hides_nothing_of_a_connector_without_offsets(invoke: Invoke, offsets: Sequence[Record]) -> None:
    """It may have had nothing to read yet."""
    assert found(invoke, scene(*offsets, own=True), 0) == HEALTHY


def test_what_an_open_transaction_hides_may_be_the_offset(invoke: Invoke) -> None:
    """A task that commits its first offset just now has it in a transaction that is not over."""
    there = scene(offset(KEY, at(5)), own=True)
    partition = there.topics.put(OWN, OTHER, at(6)).partition
    there.topics.open_transaction(OWN, partition, key=KEY)
    assert "offsets_hidden" not in [row["code"] for row in rows(invoke, there)]


def test_gtids_that_went_back_are_seen(invoke: Invoke) -> None:
    """All offsets of Debezium for MariaDB have them, and none was ever compared."""
    key = b'["orders",{"server":"s"}]'
    at_gtids = [f'{{"file":"bin.000003","pos":4,"gtids":"0-4711-{number}"}}'.encode() for number in (9, 40, 3)]
    there = scene(*(offset(key, value) for value in at_gtids))
    assert "offsets_went_back" in [row["code"] for row in rows(invoke, there)]


def test_an_offset_that_went_back_is_healed_by_the_command_that_is_printed(invoke: Invoke) -> None:
    """The connector was RUNNING and read the file again; following doctor's advice of a restart changed nothing."""
    there = scene(offset(KEY, at(10)), offset(KEY, at(40)), offset(KEY, at(3)), offset(KEY, at(7)))
    row = rows(invoke, there)[0]
    assert (row["code"], row["severity"], row["subject"]) == ("offsets_went_back", "error", "orders")
    place = f"{OFFSETS}-{partition_for(KEY, 25)}"
    assert row["message"] == (
        f'orders: the offset of {{"filename":"/f o"}} went back from {{"position":40}} ({place} offset 1) to '
        f'{{"position":3}} ({place} offset 2): what lies between is read again, and is in Kafka twice'
    )
    assert row["fix"] == (
        "Before any restart: `eosctl connectors stop orders`, `eosctl offsets set --connector orders --as-of 1 --from "
        'connect-offsets --partition \'{"filename":"/f o"}\'`, `eosctl connectors resume orders`. If somebody meant '
        "it: `eosctl doctor --ignore offsets_went_back:orders`."
    )
    run_fix(invoke, there, row, until=MEANT)
    assert there.topics.newest(OFFSETS)[KEY] == at(40)
    assert "offsets_went_back" not in [each[1] for each in found_anyhow(invoke, there)]


def found_anyhow(invoke: Invoke, there: ConfigWorld) -> list[tuple[str, str, str]]:
    return [
        (row["check"], row["code"], row["severity"])
        for row in doctor(invoke, there, "-o", "json").json()["data"]["rows"]
    ]


def test_several_that_went_back_at_once_are_one_command(invoke: Invoke) -> None:
    values = ((KEY, 40), (OTHER, 90), (KEY, 3), (OTHER, 4))
    there = scene(*(offset(key, at(position)) for key, position in values))
    [row] = [row for row in rows(invoke, there) if row["code"] == "offsets_went_back"]
    assert "--as-of 2023-11-14T" in row["fix"]
    assert row["fix"].count("offsets set") == 1
    assert "--partition" not in row["fix"], "all that it has went back"
    run_fix(invoke, there, row, until=MEANT)
    assert there.topics.newest(OFFSETS) == {KEY: at(40), OTHER: at(90)}


def test_copies_in_the_global_topic_tell_of_a_topic_that_was_made_anew_and_is_written_again(invoke: Invoke) -> None:
    """Once a task had committed from the beginning, the new topic was neither empty nor did it hide anything."""
    there = scene(offset(KEY, at(40)), own=True)
    for topic in (OWN, OFFSETS):
        there.topics.put(topic, KEY, at(2))
    row = rows(invoke, there)[0]
    assert row["code"] == "offsets_went_back"
    assert "--as-of 0 --from connect-offsets" in row["fix"]
    run_fix(invoke, there, row, until=MEANT)
    assert there.topics.newest(OWN)[KEY] == at(40)


@pytest.mark.parametrize(
    "course",
    [
        [at(40), None, at(3)],
        [at(40), at(3), at(41)],
        [at(40), b'{"position":"x"}', b'{"position":"a"}'],
        [at(40), at(40)],
        [b"[1]", b"oops", at(3)],
    ],
    ids=["reset", "passed again", "no order", "the same", "no offsets"],
)
def test_what_is_no_accident_or_nobody_can_tell(invoke: Invoke, course: Sequence[bytes | None]) -> None:
    rows = found_anyhow(invoke, scene(*(offset(KEY, value) for value in course)))
    assert "offsets_went_back" not in [row[1] for row in rows]


def test_an_aborted_offset_never_counted(invoke: Invoke) -> None:
    there = scene(offset(KEY, at(10)))
    there.topics.write_aborted([OutRecord(OFFSETS, KEY, at(99))])
    there.topics.put(OFFSETS, KEY, at(20))
    assert "offsets_went_back" not in [row[1] for row in found_anyhow(invoke, there)]


def test_what_eosctl_set_back_was_meant(invoke: Invoke) -> None:
    """The audit log of this machine tells; what anybody else wrote can't be distinguished from an accident."""
    there = scene(offset(KEY, at(40)))
    command = ["--connector", "orders", "--partition", '{"filename":"/f o"}', "--offset", '{"position":3}', "--yes"]
    there.connect.add("orders", {"connector.class": FILE_SOURCE}, state="STOPPED")
    there.time.sleep(3600)
    there.topics.state.stamp_ms = there.clock().now_ms()
    done = invoke("offsets", "set", *command, *WHERE, "-u", W1, "--via", "topic", **there.surroundings)
    assert done.exit_code == 0, done.stderr
    assert there.topics.newest(OFFSETS)[KEY] == at(3)
    assert "offsets_went_back" not in [row[1] for row in found_anyhow(invoke, there)]
    there.topics.state.stamp_ms += 60_000
    there.topics.put(OFFSETS, KEY, at(1))
    assert "offsets_went_back" in [row[1] for row in found_anyhow(invoke, there)], "from 3 to 1 nobody meant it"


def test_the_global_topic_is_read_once_for_it(invoke: Invoke) -> None:
    """Of five million records each further read takes many seconds."""
    there = scene(offset(KEY, at(40)), offset(KEY, at(3)))
    reads: list[Call] = []
    there.topics.before("read", reads.append)
    assert "offsets_went_back" in [row[1] for row in found_anyhow(invoke, there)]
    assert reads.count(Call("read", (OFFSETS, "read_committed"))) == 2, "of the gates one, of the offsets one"


def test_only_what_went_back_is_named(invoke: Invoke) -> None:
    """A time without names would put all others back too, and they would be read twice."""
    values = ((KEY, 40), (OTHER, 90), (THIRD, 1), (THIRD, 2), (KEY, 3), (OTHER, 4), (THIRD, 3))
    there = scene(*(offset(key, at(position)) for key, position in values))
    [row] = [row for row in rows(invoke, there) if row["code"] == "offsets_went_back"]
    assert (row["evidence"]["went_back"], row["fix"].count("offsets set"), row["fix"].count("--partition")) == (2, 1, 2)
    run_fix(invoke, there, row, until=MEANT)
    assert there.topics.newest(OFFSETS) == {KEY: at(40), OTHER: at(90), THIRD: at(3)}


def test_what_went_back_one_after_the_other_is_put_back_one_by_one(invoke: Invoke) -> None:
    """No time is right for all of them: what one had last, another had lost already."""
    values = ((KEY, 40), (KEY, 3), (OTHER, 90), (OTHER, 4))
    there = scene(*(offset(key, at(position)) for key, position in values))
    [row] = [row for row in rows(invoke, there) if row["code"] == "offsets_went_back"]
    assert row["fix"].count("offsets set") == 2
    run_fix(invoke, there, row, until=MEANT)
    assert there.topics.newest(OFFSETS) == {KEY: at(40), OTHER: at(90)}


def test_a_deletion_in_one_topic_counts_for_the_copies_in_the_other(invoke: Invoke) -> None:
    """A reset that reached the connector's own topic only left the former copies standing in the global one."""
    there = scene(offset(KEY, at(40)), own=True)
    for value in (at(40), None, at(3)):
        there.topics.put(OWN, KEY, value)
    assert "offsets_went_back" not in [row[1] for row in found_anyhow(invoke, there)]


def test_what_was_meant_can_be_ignored_as_it_is_printed(invoke: Invoke) -> None:
    there = scene(offset(KEY, at(40)), offset(KEY, at(3)))
    [command] = re.findall(r"meant it: `eosctl ([^`]*)`", rows(invoke, there)[0]["fix"])
    assert invoke(*shlex.split(command), *WHERE, **there.surroundings).exit_code == 0


def test_what_a_task_commits_while_it_is_looked_at_is_not_hidden(invoke: Invoke) -> None:
    """The copy in the global topic comes after the offset: whoever reads that topic last sees copies alone."""
    there = scene(own=True)
    there.topics.put(OWN, OTHER, at(6))

    def commit(made: Call) -> None:
        if made.what[0] == OWN and KEY not in there.topics.newest(OWN):
            for topic in (OWN, OFFSETS):
                there.topics.put(topic, KEY, at(5))

    there.topics.after("read", commit)
    assert found(invoke, there, 0) == HEALTHY
    assert there.topics.newest(OFFSETS) == {KEY: at(5)}, "else nothing came meanwhile"


def test_what_a_transaction_hid_for_a_moment_is_read_from_there_on(invoke: Invoke) -> None:
    """The whole topic was read once more, whenever a task was about to commit at the first read."""
    there = scene(offset(KEY, at(10)), offset(KEY, at(40)))
    partition = partition_for(KEY, 25)
    there.topics.open_transaction(OFFSETS, partition)
    there.topics.put(OFFSETS, KEY, at(3))
    bounds = there.topics.bounds(OFFSETS)[partition]
    reads: list[Call] = []

    def note(made: Call) -> None:
        reads.append(made)
        if reads.count(Call("read", (OFFSETS, "read_committed"))) == 2:
            there.topics.close_transaction(OFFSETS, partition)

    there.topics.after("read", note)
    [row] = [row for row in rows(invoke, there) if row["code"] == "offsets_went_back"]
    assert (bounds.lso, bounds.end) == (2, 4)
    assert [(each["former"]["offset"], each["now"]["offset"]) for each in row["evidence"]["offsets"]] == [(1, 3)]


def moved_to_global(*offsets: Record) -> ConfigWorld:
    """The connector had a topic of its own, and its config names none any more."""
    own = created("orders", 1, record=1, config={"offsets.storage.topic": OWN})
    records = config_records(*own, *created("orders", 1, record=1))
    return scene(*offsets, own=True, configs={}, records=records)


def test_the_topic_that_the_config_named_before_has_what_the_global_one_lacks(invoke: Invoke) -> None:
    """Copies in the global topic are written when they can be; who goes back to it reads what is missing again."""
    there = moved_to_global(offset(OTHER, at(6)))
    for key, value in ((KEY, at(5)), (OTHER, at(6)), (THIRD, None)):
        there.topics.put(OWN, key, value)
    row = rows(invoke, there)[0]
    assert (row["code"], row["subject"], row["evidence"]["hidden"]) == ("offsets_hidden", "orders", 1)
    assert "1 of 2 offsets not seen at runtime: a-orders-offsets, which its config named before, has" in row["message"]
    run_fix(invoke, there, row, until=MEANT)
    assert found(invoke, there, 0) == HEALTHY
    assert there.topics.newest(OFFSETS) == {KEY: at(5), OTHER: at(6)}


def test_the_topic_that_the_config_named_before_was_further_on(invoke: Invoke) -> None:
    there = moved_to_global(offset(KEY, at(40)))
    there.topics.put(OWN, KEY, at(90))
    row = rows(invoke, there)[0]
    assert (row["code"], row["evidence"]["offsets"][0]["former"]["topic"]) == ("offsets_went_back", OWN)
    run_fix(invoke, there, row, until=MEANT)
    assert there.topics.newest(OFFSETS)[KEY] == at(90)


@pytest.mark.parametrize("value", [None, at(90), at(95)], ids=["reset", "the same", "further on"])
def test_a_former_topic_that_is_left_behind_for_good(invoke: Invoke, value: bytes | None) -> None:
    there = moved_to_global()
    there.topics.put(OWN, KEY, at(90))
    there.topics.put(OFFSETS, KEY, value)
    assert found(invoke, there, 0) == HEALTHY


def test_a_former_topic_of_a_connector_that_was_deleted_in_between_is_not_its_own(invoke: Invoke) -> None:
    own = created("orders", 1, record=1, config={"offsets.storage.topic": OWN})
    records = config_records(*own, ("connector-orders", None), *created("orders", 1, record=1))
    there = scene(own=True, configs={}, records=records)
    there.topics.put(OWN, KEY, at(90))
    assert found(invoke, there, 0) == HEALTHY


@pytest.mark.parametrize(("later", "is_hidden"), [(OWN, False), (OFFSETS, True)], ids=["a reset", "a later copy"])
def test_a_deletion_in_its_own_topic_was_meant_unless_the_copy_is_younger(
    invoke: Invoke, later: str, is_hidden: bool
) -> None:
    there = scene(own=True)
    there.topics.put(OWN, OTHER, at(6))
    for topic in (OFFSETS, OWN) if later == OWN else (OWN, OFFSETS):
        there.topics.put(topic, KEY, None if topic == OWN else at(5))
    assert (("offsets", "offsets_hidden", "error") in found_anyhow(invoke, there)) is is_hidden
