"""`offsets log` and `offsets set --as-of` with snapshots: versions that compaction removed, and what is not claimed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.wording import rfc3339
from tests.conftest import Invoke, Outcome
from tests.fakes.offset_topics import GLOBAL, IN_OWN, OWN, OffsetWorld

FILE, OTHER = b'["c",{"filename":"/f"}]', b'["c",{"filename":"/other"}]'
HOUR_S = 3600
Run = Callable[..., Outcome]


def at(position: int) -> bytes:
    return f'{{"position":{position}}}'.encode()


@pytest.fixture
def world() -> OffsetWorld:
    """Connector c, STOPPED, reads two files."""
    world = OffsetWorld()
    world.topics.add_topic(GLOBAL, 1)
    world.topics.put(GLOBAL, FILE, at(10))
    world.topics.put(GLOBAL, OTHER, at(1))
    world.connect.add("c", {"connector.class": "FileStreamSource"}, state="STOPPED")
    return world


class Operator:
    """Takes snapshots, commits offsets and compacts, an hour each."""

    def __init__(self, world: OffsetWorld, invoke: Invoke, folder: Path) -> None:
        self.world, self._invoke, self.folder = world, invoke, folder

    def run(self, *words: str) -> Outcome:
        return self._invoke(*self.world.flags, *words, "-o", "json", **self.world.surroundings)

    def snapshot(self, *words: str) -> str:
        self.world.time.now_s += HOUR_S
        done = self.run("offsets", "snapshot", str(self.folder), *words)
        assert done.exit_code in (0, 7), done.stderr
        return str(done.json()["data"]["rows"][0]["file"])

    def commit(self, key: bytes, position: int, topic: str = GLOBAL) -> int:
        """Commits an offset and returns when, in ms."""
        self.world.time.now_s += HOUR_S
        self.world.topics.state.stamp_ms = int(self.world.time.now_s * 1000)
        return self.world.topics.put(topic, key, at(position)).timestamp_ms

    def compact(self, topic: str = GLOBAL) -> None:
        for log in self.world.topics.topics[topic].partitions:
            log.compact()

    def log(self, *words: str) -> list[dict[str, Any]]:
        done = self.run("offsets", "log", "--connector", "c", "--snapshots", str(self.folder), *words)
        assert done.exit_code == 0, done.stderr
        rows: list[dict[str, Any]] = done.json()["data"]["rows"]
        return rows

    def set(self, moment: str | int, *words: str) -> Outcome:
        text = moment if isinstance(moment, str) else str(rfc3339(moment))
        command = ["offsets", "set", "--connector", "c", "--via", "topic", "--as-of", text, *words]
        return self.run(*command, "--snapshots", str(self.folder), "--yes")

    def positions(self, topic: str = GLOBAL) -> dict[bytes | None, bytes | None]:
        return self.world.topics.newest(topic)


@pytest.fixture
def operator(world: OffsetWorld, invoke: Invoke, tmp_path: Path) -> Operator:
    return Operator(world, invoke, tmp_path / "kept")


ONLY_FILE = ("--partition", '{"filename":"/f"}')


def shown(rows: list[dict[str, Any]]) -> list[tuple[int, str | None]]:
    return [(row["value"]["position"], row.get("file")) for row in rows]


def test_versions_that_compaction_removed_are_shown_with_their_file(operator: Operator) -> None:
    """They were gone, and so was the answer to where the connector was last night."""
    first = operator.snapshot()
    operator.commit(FILE, 20)
    second = operator.snapshot()
    operator.commit(FILE, 30)
    assert shown(operator.log(*ONLY_FILE)) == [(10, None), (20, None), (30, None)], "no version twice"
    operator.compact()
    assert shown(operator.log(*ONLY_FILE)) == [(10, first), (20, second), (30, None)]
    assert [row["state"] for row in operator.log(*ONLY_FILE)] == ["committed"] * 3


def test_a_jump_is_no_jump_where_a_deletion_may_have_been_missed(operator: Operator, world: OffsetWorld) -> None:
    operator.snapshot()
    world.topics.put(GLOBAL, FILE, None)
    operator.commit(FILE, 5)
    operator.compact()
    assert [(row["value"]["position"], row["jumped_from"]) for row in operator.log(*ONLY_FILE)] == [
        (10, None),
        (5, None),
    ]


def test_a_topic_that_was_created_anew_is_another(operator: Operator, world: OffsetWorld) -> None:
    former = operator.snapshot()
    old_id = world.topics.topics[GLOBAL].topic_id
    world.topics.add_topic(GLOBAL, 1)
    operator.commit(FILE, 3)
    rows = operator.log(*ONLY_FILE)
    assert [(row["value"]["position"], row.get("topic_id"), row.get("file")) for row in rows] == [
        (10, old_id, former),
        (3, None, None),
    ]
    refused = operator.set(former)
    assert (refused.exit_code, operator.positions()[FILE]) == (6, at(3))


def test_a_snapshot_is_put_back(operator: Operator) -> None:
    file = operator.snapshot()
    operator.commit(FILE, 20)
    operator.commit(OTHER, 2)
    operator.compact()
    done = operator.set(file)
    assert (done.exit_code, operator.positions()) == (0, {FILE: at(10), OTHER: at(1)}), done.stderr
    assert {row["file"] for row in done.json()["data"]["as_of"]} == {file}


def test_a_time_at_which_a_later_snapshot_still_had_the_version(operator: Operator, world: OffsetWorld) -> None:
    """Nothing newer can have been there in between."""
    first_ms = world.topics.records(GLOBAL)[1].timestamp_ms
    operator.snapshot()
    operator.commit(FILE, 20)
    operator.commit(FILE, 30)
    operator.compact()
    done = operator.set(first_ms, *ONLY_FILE)
    assert (done.exit_code, operator.positions()[FILE]) == (0, at(10)), done.stderr


def test_a_time_between_two_snapshots_is_refused_where_a_version_may_be_missing(operator: Operator) -> None:
    first = operator.snapshot()
    missed_ms = operator.commit(FILE, 20)
    operator.commit(FILE, 30)
    operator.snapshot()
    operator.commit(FILE, 40)
    operator.compact()
    refused = operator.set(missed_ms, *ONLY_FILE)
    assert (refused.exit_code, operator.positions()[FILE]) == (6, at(40))
    [error] = refused.json()["errors"]
    assert first in error["hint"]
    assert operator.set(first, *ONLY_FILE).exit_code == 0, "what the file has can be named"


def test_the_next_version_that_follows_at_the_end_of_a_snapshot_leaves_no_room(operator: Operator) -> None:
    operator.snapshot()
    next_ms = operator.commit(FILE, 20)
    operator.snapshot()
    operator.commit(FILE, 30)
    operator.compact()
    done = operator.set(next_ms - 1, *ONLY_FILE)
    assert (done.exit_code, operator.positions()[FILE]) == (0, at(10)), done.stderr


def test_what_an_open_transaction_hid_may_be_missing(operator: Operator, world: OffsetWorld) -> None:
    """The snapshot was taken after the moment, but could not see the end of the partition."""
    first_ms = world.topics.records(GLOBAL)[0].timestamp_ms
    world.topics.open_transaction(GLOBAL, 0)
    operator.snapshot()
    world.topics.close_transaction(GLOBAL, 0)
    operator.commit(FILE, 20)
    operator.commit(FILE, 30)
    operator.compact()
    assert operator.set(first_ms, *ONLY_FILE).exit_code == 6


def test_the_log_alone_is_complete_from_its_oldest_version_on(operator: Operator) -> None:
    operator.snapshot()
    operator.commit(FILE, 20)
    operator.commit(FILE, 30)
    operator.compact()
    moment_ms = operator.commit(FILE, 40)
    operator.commit(FILE, 50)
    assert (operator.set(moment_ms, *ONLY_FILE).exit_code, operator.positions()[FILE]) == (0, at(40))


def test_an_own_topic_may_have_had_what_the_global_one_only_has_older(operator: Operator, world: OffsetWorld) -> None:
    """The own topic counts first; the stale copy in the global one was taken for the offset of that time."""
    operator.folder.mkdir()
    world.topics.add_topic(OWN, 1)
    world.connect.connectors["c"].config.update(IN_OWN)
    moments = [operator.commit(FILE, position, OWN) for position in (20, 30, 40, 50)]
    operator.compact(OWN)
    assert (operator.set(moments[1], *ONLY_FILE).exit_code, operator.positions(OWN)[FILE]) == (6, at(50))
    assert operator.set(moments[1], *ONLY_FILE, "--from", GLOBAL).exit_code == 0, "it was named"


def test_another_cluster_group_or_connector_is_refused(operator: Operator, world: OffsetWorld) -> None:
    file = operator.snapshot()
    operator.commit(FILE, 20)
    world.group_id = world.connect.group_id = "other"
    assert (operator.set(file).exit_code, shown(operator.log(*ONLY_FILE))) == (6, [(10, None), (20, None)])
    world.group_id = world.connect.group_id = "connect"
    world.connect.add("d", {"connector.class": "FileStreamSource"}, state="STOPPED")
    of_d = operator.snapshot("--connector", "d")
    assert operator.set(of_d).exit_code == 6
    world.topics.state.cluster_id = "elsewhere"
    assert operator.set(file).exit_code == 6
    assert operator.positions()[FILE] == at(20)


def test_a_source_partition_that_the_snapshot_lacks_is_not_left_as_it_is(operator: Operator) -> None:
    file = operator.snapshot()
    operator.commit(b'["c",{"filename":"/new"}]', 1)
    assert operator.set(file).exit_code == 6
    assert operator.set(file, *ONLY_FILE).exit_code == 0


def test_part_of_a_file_is_never_the_whole(operator: Operator) -> None:
    file = operator.snapshot()
    operator.commit(FILE, 20)
    operator.compact()
    content = Path(file).read_bytes()
    Path(file).write_bytes(b"".join(content.splitlines(keepends=True)[:-1]))
    assert operator.set(file).exit_code == 2
    assert shown(operator.log(*ONLY_FILE)) == [(20, None)]
    log = operator.run("offsets", "log", "--connector", "c", "--snapshots", str(operator.folder))
    assert [each["code"] for each in log.json()["errors"]] == ["snapshot_unread"]
    renamed = Path(file).with_name("mine.ndjson")
    renamed.write_bytes(content)
    assert operator.set(str(renamed)).exit_code == 2
    assert operator.positions()[FILE] == at(20)


def test_a_topic_that_counted_then_and_is_not_used_now(operator: Operator, world: OffsetWorld) -> None:
    """The global topic has an old copy, which never counted while the connector had a topic of its own."""
    world.topics.add_topic(OWN, 1)
    moment_ms = operator.commit(FILE, 90, OWN)
    world.connect.connectors["c"].config.update(IN_OWN)
    file = operator.snapshot()
    del world.connect.connectors["c"].config["offsets.storage.topic"]
    now_ms = operator.commit(FILE, 95)
    for when in (file, moment_ms):
        assert (operator.set(when, *ONLY_FILE).exit_code, operator.positions()[FILE]) == (6, at(95))
    assert operator.set(file, *ONLY_FILE, "--from", OWN).exit_code == 0
    assert operator.positions()[FILE] == at(90)
    operator.snapshot()
    later_ms = operator.commit(FILE, 97) + 1
    assert now_ms < later_ms
    assert operator.set(later_ms, *ONLY_FILE).exit_code == 0, "no snapshot around that time has the other topic"


def test_a_snapshot_without_the_own_topic_says_nothing_of_it(operator: Operator, world: OffsetWorld) -> None:
    world.topics.add_topic(OWN, 1)
    world.topics.put(OWN, FILE, at(9))
    world.connect.connectors["c"].config.update(IN_OWN)
    file = operator.snapshot("--store", "global")
    assert (operator.set(file, *ONLY_FILE).exit_code, operator.positions(OWN)[FILE]) == (6, at(9))
    assert operator.set(file, *ONLY_FILE, "--from", GLOBAL).exit_code == 0


@pytest.mark.parametrize("name", ['c"d\\e', "ü ber", "\U0001f600", ",x", "a-b", "a\nb", "global"])
def test_connectors_with_odd_names_are_found(operator: Operator, world: OffsetWorld, name: str) -> None:
    import json

    key = json.dumps([name, {"filename": "/f"}], ensure_ascii=False, separators=(",", ":")).encode()
    escaped = json.dumps([name, {"filename": "/g"}]).encode()
    for each in (key, escaped):
        world.topics.put(GLOBAL, each, at(1))
    operator.snapshot()
    for each in (key, escaped):
        world.topics.put(GLOBAL, each, at(2))
    operator.compact()
    world.connect.add(name, {"connector.class": "FileStreamSource"}, state="STOPPED")
    done = operator.run("offsets", "log", "--connector", name, "--snapshots", str(operator.folder))
    assert [row["value"]["position"] for row in done.json()["data"]["rows"]] == [1, 2, 1, 2]


NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""The id of every topic to clients of Kafka before 2.8."""


def test_without_topic_ids_a_topic_that_was_created_anew_is_not_taken_for_the_former(
    operator: Operator, world: OffsetWorld
) -> None:
    """Both had the same id, and the connector got the offset of the former topic."""
    world.topics.topics[GLOBAL].topic_id = NO_ID
    former = operator.snapshot()
    world.topics.add_topic(GLOBAL, 1)
    world.topics.topics[GLOBAL].topic_id = NO_ID
    operator.commit(FILE, 3)
    assert (operator.set(former, *ONLY_FILE).exit_code, operator.positions()[FILE]) == (6, at(3))


def test_without_topic_ids_a_record_that_both_have_proves_the_topic(operator: Operator, world: OffsetWorld) -> None:
    world.topics.topics[GLOBAL].topic_id = NO_ID
    file = operator.snapshot()
    operator.commit(FILE, 20)
    operator.compact()
    assert operator.set(file, *ONLY_FILE).exit_code == 0, "the topic still has the record of the other file"
    assert operator.positions()[FILE] == at(10)


def test_a_snapshot_whose_clock_was_ahead_is_not_after_that_time(operator: Operator, world: OffsetWorld) -> None:
    """The version of three hours before the snapshot's time was set, although another counted at the time."""
    world.time.now_s += 3 * HOUR_S
    operator.snapshot()
    world.time.now_s -= 4 * HOUR_S
    moment_ms = operator.commit(FILE, 20)
    operator.commit(FILE, 30)
    operator.commit(OTHER, 2)
    operator.compact()
    assert (operator.set(moment_ms, *ONLY_FILE).exit_code, operator.positions()[FILE]) == (6, at(30))


def test_a_later_snapshot_with_an_earlier_time_shows_that_a_clock_was_wrong(
    operator: Operator, world: OffsetWorld
) -> None:
    world.time.now_s += 12 * HOUR_S
    operator.snapshot()
    world.time.now_s -= 13 * HOUR_S
    moment_ms = operator.commit(FILE, 20)
    operator.commit(FILE, 30)
    operator.snapshot()
    world.time.now_s += 20 * HOUR_S
    operator.commit(FILE, 40)
    operator.compact()
    assert (operator.set(moment_ms, *ONLY_FILE).exit_code, operator.positions()[FILE]) == (6, at(40))


def test_another_spelling_may_have_had_a_newer_one_then(operator: Operator) -> None:
    """The version of the one key was set, although one of the other counted; compaction had removed it."""
    operator.folder.mkdir()
    odd = b'["c", {"filename":"/f"}]'
    moments = [operator.commit(odd, position) for position in (20, 30, 40)]
    operator.compact()
    assert operator.set(moments[1], *ONLY_FILE).exit_code == 6
    assert operator.positions()[odd] == at(40)


def test_no_other_spelling_was_there_where_the_log_is_whole(operator: Operator) -> None:
    operator.folder.mkdir()
    first_ms = operator.world.topics.records(GLOBAL)[0].timestamp_ms
    operator.commit(b'["c", {"filename":"/f"}]', 20)
    assert operator.set(first_ms, *ONLY_FILE).exit_code == 0


def test_records_that_lay_behind_an_open_transaction_do_not_contradict_the_time(
    operator: Operator, world: OffsetWorld
) -> None:
    """They were there already, and came into sight later."""
    world.topics.add_topic(GLOBAL, 2)
    first_ms = world.topics.put(GLOBAL, FILE, at(10), partition=0).timestamp_ms
    world.topics.open_transaction(GLOBAL, 1)
    world.topics.put(GLOBAL, OTHER, at(1), partition=1)
    operator.snapshot()
    world.topics.close_transaction(GLOBAL, 1)
    world.time.now_s += HOUR_S
    world.topics.state.stamp_ms = int(world.time.now_s * 1000)
    for position in (20, 30):
        world.topics.put(GLOBAL, FILE, at(position), partition=0)
    operator.compact()
    done = operator.set(first_ms, *ONLY_FILE)
    assert (done.exit_code, operator.positions()[FILE]) == (0, at(10)), done.stderr
