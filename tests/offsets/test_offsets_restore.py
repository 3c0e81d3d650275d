"""`eosctl offsets restore` as typed: what a backup may be written over, and whose a newer record is."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import pytest

from eosctl.core.offsets.names import partition_for
from eosctl.core.records import OutRecord
from eosctl.errors import UnreachableError
from tests.conftest import Outcome
from tests.fakes.offset_topics import OffsetWorld
from tests.fakes.reddit import APACHE, CATS, CHEESE, GLOBAL, offset, reddit_world

Run = Callable[..., Outcome]


@pytest.fixture
def world() -> OffsetWorld:
    return reddit_world()


def test_the_undo_command_takes_a_merge_back(run: Run, world: OffsetWorld) -> None:
    done = run("merge", "--connector", "reddit", "--into", "global", "--prefer", "dedicated", "--yes", "-o", "json")
    assert world.topics.newest(GLOBAL)[CATS] == offset(2169)
    assert world.topics.newest(GLOBAL)[CHEESE] == offset(489)
    undo = shlex.split(done.json()["data"]["undo"])
    assert undo[:3] == ["eosctl", "offsets", "restore"]
    undone = run("restore", *undo[3:], "--yes")
    assert undone.exit_code == 0
    assert "1 key had no record before; such a key gets a tombstone" in undone.stderr
    newest = world.topics.newest(GLOBAL)
    assert (newest[CATS], newest[CHEESE], newest[APACHE]) == (offset(2112), None, offset(4761))


def test_restore_refuses_what_someone_else_wrote_since(run: Run, world: OffsetWorld) -> None:
    backup = run("merge", "--connector", "reddit", "--into", "global", "--yes", "-o", "json").json()["data"]["backup"]
    world.topics.put(GLOBAL, CATS, offset(9999))
    refused = run("restore", backup, "--yes")
    assert (refused.exit_code, world.topics.newest(GLOBAL)[CATS]) == (6, offset(9999))
    assert "1 offset was written by someone else since" in refused.stderr
    assert run("restore", backup, "--yes", "--overwrite-newer").exit_code == 0
    assert world.topics.newest(GLOBAL)[CATS] == offset(2112)


def writes_as(world: OffsetWorld, transactional_id: str, key: bytes) -> None:
    """A producer commits 9999 under this key a minute later, on the partition of CATS."""
    world.time.pass_until(world.time.now_s + 60)
    state, now_ms = world.brokers.state, world.clock().now_ms()
    _error, producer_id, epoch = state.init_producer_id(transactional_id, 60_000)
    record = OutRecord(GLOBAL, key, offset(9999), timestamp_ms=now_ms)
    state.write_in(transactional_id, (producer_id, epoch), record, partition_for(CATS, 5))
    state.end_transaction(transactional_id, (producer_id, epoch), commit=True)


def test_restore_shows_what_the_backup_has_and_whose_the_newer_record_is(run: Run, world: OffsetWorld) -> None:
    """BEFORE and AFTER of a conflict both showed the newer value, and nothing told what a restore would put there."""
    backup = run("merge", "--connector", "reddit", "--into", "global", "--yes", "-o", "json").json()["data"]["backup"]
    writes_as(world, "connect-reddit-0", CATS)
    writes_as(world, "connect-plain-0", b"something else on the same partition, later")
    rows = run("restore", backup, "--dry-run", "-o", "json").json()["data"]["rows"]
    [row] = [row for row in rows if "backup" in row]
    assert (row["action"], row["before"], row["backup"]) == ("conflict", {"timestamp": "9999"}, {"timestamp": "2112"})
    assert (row["newer"]["transactional_id"], row["newer"]["owner"]["connector"]) == ("connect-reddit-0", "reddit")
    shown = run("restore", backup, "--dry-run").stdout
    assert (", connect-reddit-0" in shown, '{"timestamp":"2112"}' in shown) == (True, True)
    writes_as(world, "connect-reddit-1", b"and another task of the connector")
    rows = run("restore", backup, "--dry-run", "-o", "json").json()["data"]["rows"]
    assert [row["newer"]["transactional_id"] for row in rows if "newer" in row] == [None], "it may be of either"


def test_restore_admits_that_it_does_not_know_whose_a_record_is(run: Run, world: OffsetWorld) -> None:
    """Workers without exactly-once write under no transactional id, and a broker may not tell its producers."""
    backup = run("merge", "--connector", "reddit", "--into", "global", "--yes", "-o", "json").json()["data"]["backup"]
    world.topics.put(GLOBAL, CATS, offset(9999))
    assert "by whom is not known" in run("restore", backup, "--dry-run").stdout
    world.brokers.calls.fail_next("describe_producers", UnreachableError("no broker"))
    assert "by whom is not known" in run("restore", backup, "--dry-run").stdout
    rows = run("restore", backup, "--overwrite-newer", "--yes", "-o", "json").json()["data"]["rows"]
    assert any("newer" in row for row in rows)
    rows = run("restore", backup, "--dry-run", "-o", "json").json()["data"]["rows"]
    assert not any("newer" in row for row in rows), "nothing is newer now"


def test_restore_refuses_where_an_open_transaction_may_hide_what_someone_wrote(run: Run, world: OffsetWorld) -> None:
    """It used to take what it could see for all there is."""
    backup = run("merge", "--connector", "reddit", "--into", "global", "--yes", "-o", "json").json()["data"]["backup"]
    world.topics.open_transaction(GLOBAL, partition_for(CATS, 5))
    world.topics.put(GLOBAL, CATS, offset(9999))
    writes = world.topics.writes
    refused = run("restore", backup, "--yes", "--timeout", "1s")
    assert (refused.exit_code, world.topics.writes) == (6, writes)
    assert "`eosctl fence eosctl-offsets-connect-writer` ends it at once" in refused.stderr
