"""Copies of keys on other partitions, of which a worker may read any last: a migration puts tombstones over them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from eosctl.core.offsets.names import partition_for
from eosctl.errors import EosctlError, ExitCode
from eosctl.offsets.files.restore import RestoreRequest, plan_restore
from tests.fakes.killed_migration import COPIES, GONE, KEPT, KEYS, OLD, PARTITIONS, KillableScene, backup_rows

HOME = {key: partition_for(key, PARTITIONS) for key in (*KEYS, KEPT, GONE)}
LIVE = {(key, HOME[key]): value for key, value in {KEPT: b'{"n":99}', **KEYS}.items() if key.startswith(b'["a"')}


def once(happens: Callable[[object], None]) -> Callable[[object], None]:
    """Does it at the first call."""
    done: list[object] = []

    def first(call: object) -> None:
        if not done:
            done.append(call)
            happens(call)

    return first


def test_each_key_has_its_value_in_one_place_afterwards(tmp_path: Path) -> None:
    """They stayed, and one that a worker read last brought an old offset back."""
    scene = KillableScene(tmp_path, copies=True)
    assert set(COPIES.items()) <= set(scene.live("offsets-a"))
    result = scene.run()
    assert (result.exit_code, scene.live("offsets-a")) == (ExitCode.OK, LIVE)
    assert (result.summary.sent, result.summary.verified, result.summary.differing) == (7, 7, 0)
    last = {record.key: record.partition for record in scene.topics.records("offsets-a")}
    assert last[OLD] == HOME[OLD], "who goes by time finds the value, not the tombstone"


def test_the_plan_says_so(tmp_path: Path) -> None:
    scene = KillableScene(tmp_path, copies=True)
    assert scene.planned.stale_copies == 2
    report = scene.from_file(scene.planned).report()
    [problem] = [each for each in report.problems if each.code == "stale_copies"]
    assert problem.message == "2 older copies of keys that are written lie on other partitions, and get tombstones"


def test_what_is_not_written_keeps_its_copies(tmp_path: Path) -> None:
    """A migration leaves alone what it leaves alone; `offsets lint` has the repair."""
    scene = KillableScene(tmp_path, copies=True)
    away = (HOME[KEPT] + 1) % PARTITIONS
    scene.topics.put("offsets-a", KEPT, b'{"n":1}', partition=away)
    scene.planned = scene.plan(policy=scene.planned.policy)
    assert scene.run().exit_code is ExitCode.OK
    assert scene.live("offsets-a") == {**LIVE, (KEPT, away): b'{"n":1}'}


def test_killed_at_every_step(tmp_path: Path) -> None:
    undisturbed = KillableScene(tmp_path / "undisturbed", copies=True)
    assert undisturbed.run().exit_code is ExitCode.OK
    skipped = set[str]()
    for step in range(undisturbed.kill.ticks):
        scene = KillableScene(tmp_path / f"killed-{step}", copies=True)
        scene.killed_after(step)
        result = scene.run(resume=True)
        assert (result.exit_code, scene.live("offsets-a")) == (ExitCode.OK, LIVE), f"killed after step {step}"
        assert (result.summary.verified, result.summary.differing) == (7, 0), f"killed after step {step}"
        assert scene.backup() == undisturbed.backup()
        stamped = {(each.key, each.partition): each.timestamp_ms for each in scene.topics.records("offsets-a")}
        assert stamped[OLD, COPIES[OLD]] < stamped[OLD, HOME[OLD]], "who goes by time finds the value"
        assert not scene.open_ids(), "a transaction was left open"
        skipped |= set(map(str, result.data.skipped))
    assert skipped == {"backup", "create", "clean", "write"}


def test_the_value_is_younger_than_the_tombstone_by_whatever_clock(tmp_path: Path) -> None:
    """An executor whose clock was behind the driver's made the tombstone the younger: every view said deleted, and
    the plan was verified."""
    scene = KillableScene(tmp_path, copies=True)

    def resume_an_hour_earlier(_call: object) -> None:
        now_s = scene.clock.now_s
        scene.clock = replace(scene.clock, now_s=lambda: now_s() - 3600)
        raise EosctlError("a broker went away")

    def their_clocks_are_behind(_call: object) -> None:
        state = scene.brokers.state
        state.clock = replace(state.clock, now_s=lambda: 1_000.0)

    scene.stages.before("transaction", once(resume_an_hour_earlier))
    scene.topics.after("write", once(their_clocks_are_behind))
    assert scene.run().exit_code is not ExitCode.OK
    assert scene.run(resume=True).exit_code is ExitCode.OK
    stamped = {(each.key, each.partition): each.timestamp_ms for each in scene.topics.records("offsets-a")}
    assert stamped[OLD, COPIES[OLD]] < stamped[OLD, HOME[OLD]]


def test_the_backup_brings_them_back(tmp_path: Path) -> None:
    scene = KillableScene(tmp_path, copies=True)
    before = scene.live("offsets-a")
    result = scene.run()
    backup = str(result.data.backup)
    kept = {(row["key"], row["partition"]): row["value"] for row in backup_rows(backup)}
    assert {place: kept[place] for place in COPIES.items()} == dict.fromkeys(COPIES.items(), b'{"n":-2}')
    restore = plan_restore(scene.app(), RestoreRequest(backup))
    back = {(write.key.raw, write.partition): write.after for write in restore.writes if write.topic == "offsets-a"}
    assert {place: value for place, value in back.items() if value is not None} == {
        place: value for place, value in before.items() if place[0] != KEPT
    }


def test_a_copy_that_is_there_again_is_found(tmp_path: Path) -> None:
    """Whoever wrote it: a worker may read it last."""
    scene = KillableScene(tmp_path, copies=True)

    def write_again(_call: object) -> None:
        scene.topics.put("offsets-a", OLD, b'{"n":-2}', partition=COPIES[OLD])
        scene.put("offsets-a", {OLD: KEYS[OLD]})

    scene.stages.after("write", write_again)
    result = scene.run()
    assert (result.exit_code, result.summary.differing) == (ExitCode.PARTIAL, 1)
    [row] = result.rows
    assert (row.status, row.key) == ("unexpected", OLD.decode())
