"""`eosctl offsets set --as-of`: a former offset is put back from the log, and what the log lost is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eosctl.core.records import OutRecord
from eosctl.core.wording import rfc3339
from eosctl.deadline import Clock
from eosctl.offsets.history.as_of import as_of
from tests.conftest import Invoke, Outcome
from tests.fakes.offset_topics import GLOBAL, IN_OWN, OWN, OffsetWorld

FILE, OTHER = b'["c",{"filename":"/f"}]', b'["c",{"filename":"/other"}]'
ONE = ("--partition", '{ "filename": "/f" }')
Run = Callable[..., Outcome]


def at(position: int) -> bytes:
    return f'{{"position":{position}}}'.encode()


@pytest.fixture
def world() -> OffsetWorld:
    """A stopped connector whose offset was set from 40 back to 5; another source partition went on to 7."""
    world = OffsetWorld()
    world.topics.add_topic(GLOBAL, 1)
    for key, position in ((FILE, 10), (OTHER, 6), (FILE, 40), (FILE, 5), (OTHER, 7)):
        world.topics.put(GLOBAL, key, at(position))
    world.connect.add("c", state="STOPPED")
    return world


@pytest.fixture
def run(world: OffsetWorld, invoke: Invoke) -> Run:
    def put(*words: str) -> Outcome:
        command = ["offsets", "set", "--connector", "c", "--via", "topic", *words]
        return invoke(*world.flags, *command, **world.surroundings)

    return put


def time_of(world: OffsetWorld, offset: int) -> str:
    """As `offsets log` prints it."""
    return str(rfc3339(world.topics.state.log(GLOBAL, 0).records[offset].timestamp_ms))


def newest(world: OffsetWorld, topic: str = GLOBAL) -> dict[bytes | None, bytes | None]:
    return world.topics.newest(topic)


def test_an_offset_of_the_log_is_put_back(run: Run, world: OffsetWorld) -> None:
    """What stood there before had to be found with a consumer, and typed."""
    done = run("--as-of", "2", "--yes", "-o", "json").json()
    assert (done["exit_code"], newest(world)) == (0, {FILE: at(40), OTHER: at(7)})
    [former] = done["data"]["as_of"]
    assert (former["topic"], former["offset"], former["value"]) == (GLOBAL, 2, {"position": 40})


def test_the_plan_the_backup_and_the_undo_are_those_of_set(run: Run, world: OffsetWorld, invoke: Invoke) -> None:
    plan = run("--as-of", "2", "--dry-run")
    assert f'{{"filename":"/f"}} as of {GLOBAL}-0@2, {time_of(world, 2)}' in plan.stdout
    assert '{"filename":"/f"} position: 5 -> 40, forward' in plan.stdout
    assert "nowhere in Kafka" not in plan.stderr, "it was read before"
    assert newest(world)[FILE] == at(5)
    done = run("--as-of", "2", "--yes", "-o", "json").json()
    undone = invoke(*world.flags, *done["data"]["undo"].split()[1:], "--yes", **world.surroundings)
    assert (undone.exit_code, newest(world)[FILE]) == (0, at(5))


def test_a_time_means_every_source_partition(run: Run, world: OffsetWorld) -> None:
    assert run("--as-of", time_of(world, 2), "--yes").exit_code == 0
    assert newest(world) == {FILE: at(40), OTHER: at(6)}


def test_a_time_means_only_the_source_partitions_that_are_named(run: Run, world: OffsetWorld) -> None:
    assert run("--as-of", time_of(world, 2), *ONE, "--yes").exit_code == 0
    assert newest(world) == {FILE: at(40), OTHER: at(7)}


def test_a_running_connector_is_refused_as_ever(run: Run, world: OffsetWorld) -> None:
    world.connect.add("c", tasks=1)
    world.connect.own(world.connect.leader, ("c", 0))
    refused = run("--as-of", "2", "--yes")
    assert (refused.exit_code, newest(world)[FILE]) == (6, at(5)), refused.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--as-of", "9"], "no committed offset of c at offset 9: it has offset 0 of connect-offsets-0"),
        (["--as-of", "2", "--partition", '{"filename":"/other"}'], "it has offset 1 of connect-offsets-0"),
        (["--as-of", "2020-01-01"], "the oldest is offset 0 of connect-offsets-0 (2023-11-14T22:13:21.000Z)"),
    ],
)
def test_what_is_not_in_the_log_is_refused_with_what_is(
    run: Run, world: OffsetWorld, words: list[str], reason: str
) -> None:
    refused = run(*words, "--yes")
    assert (refused.exit_code, reason in refused.stderr) == (6, True), refused.stderr
    assert "`eosctl offsets log --connector c` shows every version" in refused.stderr
    assert newest(world) == {FILE: at(5), OTHER: at(7)}


def test_what_was_aborted_or_deleted_is_no_offset_to_put_back(run: Run, world: OffsetWorld) -> None:
    world.topics.write_aborted([OutRecord(GLOBAL, FILE, at(99))])
    world.topics.put(GLOBAL, OTHER, None)
    aborted, deleted = 5, len(world.topics.state.log(GLOBAL, 0).records)
    assert "the version there is aborted" in run("--as-of", str(aborted), "--yes").stderr
    assert "the version there is a deletion" in run("--as-of", str(deleted), "--yes").stderr
    then = time_of(world, -1)
    assert run("--as-of", then, "--yes").exit_code == 0, "it has none now either"
    world.topics.put(GLOBAL, OTHER, at(1))
    refused = run("--as-of", then, "--yes")
    assert (refused.exit_code, "had no offset at" in refused.stderr) == (6, True)
    assert '`eosctl offsets reset --connector c --partition \'{"filename":"/other"}\'`' in refused.stderr


def test_the_own_topic_counts_and_the_global_one_for_what_that_never_had(run: Run, world: OffsetWorld) -> None:
    """A topic that was recreated has none of the former offsets; the copies in the global one are what is left."""
    world.topics.add_topic(OWN, 1)
    world.topics.put(OWN, FILE, at(2))
    world.connect.connectors["c"].config.update(IN_OWN)
    then = time_of(world, 2)
    assert run("--as-of", then, *ONE, "--yes").exit_code == 0
    assert (newest(world)[FILE], newest(world, OWN)[FILE]) == (at(40), at(40))
    ambiguous = run("--as-of", "0", "--yes")
    assert (ambiguous.exit_code, "several source partitions or topics" in ambiguous.stderr) == (6, True)
    assert run("--as-of", "0", "--from", OWN, "--yes").exit_code == 0
    assert newest(world)[FILE] == at(2)


@pytest.mark.parametrize(
    "words",
    [
        [],
        [*ONE],
        [*ONE, "--offset", '{"position":1}', "--as-of", "2"],
        [*ONE, "--offset", '{"position":1}', "--from", "global"],
        ["--as-of", "yesterday"],
    ],
)
def test_bad_input_is_a_usage_error(run: Run, words: list[Any]) -> None:
    assert run(*words).exit_code == 2


def test_a_time_is_taken_to_the_millisecond() -> None:
    """Through a float `.001Z` became `.000`: the version that `offsets log` had shown for it was not found."""
    clock = Clock()
    for moment_ms in range(1_700_000_000_000, 1_700_000_001_000):
        assert as_of(str(rfc3339(moment_ms)), clock).moment_ms == moment_ms
    assert as_of("12", clock).log_offset == 12
