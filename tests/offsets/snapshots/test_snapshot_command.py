"""`eosctl offsets snapshot` as typed: the file, what it lacks, what is removed, and how it ends."""

from __future__ import annotations

import fcntl
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.core.kept.snapshot_header import read_header
from eosctl.errors import (
    InterruptedByUserError,
    NotFoundError,
    UnauthorizedError,
    UnreachableError,
    UsageError,
)
from eosctl.offsets.snapshots.take import SnapshotRequest, take_snapshots
from tests.conftest import Invoke, Outcome
from tests.fakes.clock import FakeTime
from tests.fakes.faults import Call, KilledError
from tests.fakes.offset_topics import GLOBAL, IN_OWN, OWN, OffsetWorld

A, B, ODD = b'["c",{"f":"a"}]', b'["d",{"f":"b"}]', b'["c",{"f":"\xff"}]'
Run = Callable[..., Outcome]


@pytest.fixture
def world() -> OffsetWorld:
    """Connector c has a topic of its own, d has none; a key is no UTF-8, and d's offset was deleted."""
    world = OffsetWorld()
    world.topics.add_topic(GLOBAL, 2)
    world.topics.add_topic(OWN, 1)
    for topic, key, value in (
        (GLOBAL, A, b'{"n":1}'),
        (GLOBAL, A, b'{"n":2}'),
        (GLOBAL, B, b'{"n":1}'),
        (GLOBAL, B, None),
        (GLOBAL, ODD, b"\xfe"),
        (OWN, A, b'{"n":3}'),
    ):
        world.topics.put(topic, key, value)
    world.connect.add("c", IN_OWN, state="STOPPED")
    world.connect.add("d", {"connector.class": "FileStreamSource"}, state="STOPPED")
    return world


@pytest.fixture
def run(world: OffsetWorld, invoke: Invoke, tmp_path: Path) -> Run:
    def take(*words: str) -> Outcome:
        flags = [*world.flags, "offsets", "snapshot", str(tmp_path / "kept"), *words, "-o", "json"]
        return invoke(*flags, **world.surroundings)

    return take


def only_row(done: Outcome) -> dict[str, Any]:
    [row] = done.json()["data"]["rows"]
    assert isinstance(row, dict)
    return row


def files(tmp_path: Path) -> list[str]:
    return sorted(os.listdir(tmp_path / "kept"))


def test_a_file_has_the_newest_committed_record_of_each_key_of_every_store(run: Run, tmp_path: Path) -> None:
    """Once compaction had passed, no tool could say where a connector was last night."""
    done = run()
    assert done.exit_code == 0, done.stderr
    row = only_row(done)
    assert (row["outcome"], row["topics"], row["records"], row["tombstones"]) == ("written", [GLOBAL, OWN], 4, 1)
    [name] = files(tmp_path)
    path = tmp_path / "kept" / name
    assert (row["file"], path.stat().st_mode & 0o777, (tmp_path / "kept").stat().st_mode & 0o777) == (
        str(path), 0o600, 0o700,
    )  # fmt: skip
    first, *lines = path.read_bytes().splitlines()
    header = read_header(first, name=name)
    assert header is not None
    assert (header.kafka_cluster_id, header.group_id, header.unseen) == ("memory-cluster", "connect", ())
    assert [(each.topic, len(each.partitions)) for each in header.topics] == [(GLOBAL, 2), (OWN, 1)]
    records = {(each["topic"], str(each["key"])): each["value"] for each in map(json.loads, lines)}
    assert records == {
        (GLOBAL, A.decode()): '{"n":2}',
        (GLOBAL, B.decode()): None,
        (GLOBAL, "{'base64': 'WyJjIix7ImYiOiL/In1d'}"): {"base64": "/g=="},
        (OWN, A.decode()): '{"n":3}',
    }


def test_only_named_connectors_and_stores(run: Run, tmp_path: Path) -> None:
    assert only_row(run("--connector", "d"))["records"] == 1
    assert only_row(run("--store", "dedicated"))["topics"] == [OWN]
    assert only_row(run("--store", GLOBAL))["topics"] == [GLOBAL]
    assert len(files(tmp_path)) == 3, "each is of another kind, so that none is unchanged"
    assert run("--connector", "nobody").exit_code == 1
    assert run("--store", "x@elsewhere").exit_code == 2
    assert run("--store", "missing").exit_code == 1


def test_nothing_new_is_not_written_again(run: Run, world: OffsetWorld, tmp_path: Path) -> None:
    first = only_row(run())
    again = only_row(run())
    assert (again["outcome"], again["file"], again["records"]) == ("unchanged", first["file"], None)
    world.topics.put(OWN, A, b'{"n":4}')
    assert only_row(run())["outcome"] == "written"
    assert len(files(tmp_path)) == 2


def test_two_within_a_moment_do_not_clash(run: Run, world: OffsetWorld, tmp_path: Path) -> None:
    for number in range(3):
        world.topics.put(OWN, A, b'{"n":%d}' % (10 + number))
        assert run().exit_code == 0
    assert len(files(tmp_path)) == 3


def test_only_its_own_oldest_files_are_removed(run: Run, world: OffsetWorld, tmp_path: Path) -> None:
    made = []
    assert run("--connector", "d").exit_code == 0
    [other_kind] = files(tmp_path)
    (tmp_path / "kept" / "offsets-snapshot-20200101T000000000Z-00000000.ndjson").write_text("{}\n")
    (tmp_path / "kept" / "notes.txt").write_text("mine")
    for number in range(4):
        world.time.now_s += 3600
        world.topics.put(OWN, A, b'{"n":%d}' % (10 + number))
        row = only_row(run("--keep", "2"))
        made.append(row["file"])
    assert row["removed"] == [made[1]]
    kept = {str(tmp_path / "kept" / name) for name in files(tmp_path)}
    assert {made[2], made[3]} <= kept
    assert not kept & set(made[:2])
    assert len(kept) == 5, "the file of another kind, and those that eosctl did not make, stay"
    assert str(tmp_path / "kept" / other_kind) in kept


def test_the_newest_complete_file_is_never_removed(run: Run, world: OffsetWorld, tmp_path: Path) -> None:
    complete = only_row(run())["file"]
    world.topics.open_transaction(GLOBAL, 0)
    for number in range(2):
        world.topics.put(OWN, A, b'{"n":%d}' % number)
        assert run("--keep", "1").exit_code == 7
    assert len(files(tmp_path)) == 2
    assert Path(complete).exists()


def test_what_an_open_transaction_hides_is_in_the_header_and_in_the_exit_code(run: Run, world: OffsetWorld) -> None:
    world.topics.open_transaction(GLOBAL, 0)
    done = run()
    assert (done.exit_code, only_row(done)["unseen"]) == (7, 1)
    [part] = done.json()["data"]["unseen"]
    assert part["what"] == "snapshot_incomplete"
    first = Path(only_row(done)["file"]).read_bytes().splitlines()[0]
    header = read_header(first, name="x")
    assert header is not None
    assert [each.topic for each in header.unseen] == [GLOBAL]


def test_a_topic_that_may_not_be_read_is_missed_and_not_the_others(run: Run, world: OffsetWorld) -> None:
    def refuse(call: Call) -> None:
        if OWN in call.what[0]:  # type: ignore[operator]
            raise UnauthorizedError("reading topic own: not authorized", hint="Grant READ.")

    world.topics.before("newest_of", refuse)
    done = run()
    assert (done.exit_code, only_row(done)["topics"]) == (7, [GLOBAL])
    assert run("--store", OWN).exit_code == 5, "nothing is left of what was named"


def test_own_topics_that_are_not_known_are_missed(run: Run, world: OffsetWorld) -> None:
    world.connect.add("e", {"offsets.storage.topic": "${file:/x:y}"}, state="STOPPED")
    assert run().exit_code == 7
    assert run("--store", "global").exit_code == 0, "they were not asked for"


def test_two_runs_at_once(run: Run, tmp_path: Path) -> None:
    assert run().exit_code == 0
    folder = os.open(tmp_path / "kept", os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        assert run().exit_code == 6
    finally:
        os.close(folder)


def test_a_killed_run_leaves_no_file_under_a_name(run: Run, world: OffsetWorld, tmp_path: Path) -> None:
    world.topics.fail_next("stream", KilledError(), skip=1)
    with pytest.raises(KilledError):
        run()
    assert [name for name in files(tmp_path) if not name.startswith(".")] == []


def test_what_killed_runs_left_is_removed_after_a_day(run: Run, tmp_path: Path) -> None:
    """A machine that is short of memory would be short of disk, too, after some hours."""
    assert run().exit_code == 0
    old, new, mine = (tmp_path / "kept" / name for name in (f".{'a' * 32}.new", f".{'b' * 32}.new", ".mine.new"))
    for path in (old, new, mine):
        path.touch()
    for path in (old, mine):
        os.utime(path, (1, 1))
    assert run().exit_code == 0
    assert [path.exists() for path in (old, new, mine)] == [False, True, True]


def test_a_folder_of_others_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept").chmod(0o777)
    assert run().exit_code == 1


def rounds(world: OffsetWorld, tmp_path: Path, number: int, end: Callable[[], None]) -> tuple[Any, list[Any], FakeTime]:
    """Runs with a period of an hour, until that round has slept; `end` is what happens then."""
    time, rows = FakeTime(now_s=1_700_000_000.0), list[Any]()

    def passed() -> None:
        world.topics.put(OWN, A, b'{"n":9}')
        if len(rows) == number:
            end()
        time.later(3600, passed)

    time.later(1, passed)
    app = world.app(tmp_path)
    app = replace(app, clock=time.clock(), deadline=replace(app.deadline, clock=time.clock(), at_s=time.now_s + 60))
    return take_snapshots(app, SnapshotRequest(tmp_path / "kept", every_s=3600.0), rows.append), rows, time


def test_every_period_a_file_and_a_failed_round_is_not_the_end(world: OffsetWorld, tmp_path: Path) -> None:
    world.topics.fail_next("stream", UnreachableError("no broker", hint="Wait."), skip=2)

    def terminate() -> None:
        signal.raise_signal(signal.SIGTERM)

    report, rows, _time = rounds(world, tmp_path, 3, terminate)
    assert [str(row.outcome) for row in rows] == ["written", "failed", "written"]
    assert int(report.exit_code) == 0
    assert (report.summary.written, report.summary.failed) == (2, 1)
    assert len(files(tmp_path)) == 2


def test_what_is_wrong_from_the_start_is_not_tried_again(world: OffsetWorld, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        take_snapshots(world.app(tmp_path), SnapshotRequest(tmp_path / "kept", ("nobody",), every_s=3600.0))
    with pytest.raises(UsageError):
        take_snapshots(world.app(tmp_path), SnapshotRequest(tmp_path / "kept", stores=("x@y",), every_s=3600.0))


def test_ctrl_c_ends_it_with_130(world: OffsetWorld, tmp_path: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(InterruptedByUserError):
        rounds(world, tmp_path, 1, interrupt)
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("command", ["import", "diff", "restore"])
def test_readers_of_record_files_read_it(run: Run, world: OffsetWorld, invoke: Invoke, command: str) -> None:
    path = only_row(run())["file"]
    world.topics.put(OWN, A, b'{"n":9}')
    words = {
        "import": ["import", "--store", OWN, "--connector", "c", path, "--yes"],
        "diff": ["diff", "--connector", "c", path, "dedicated"],
        "restore": ["restore", path, "--yes"],
    }[command]
    done = invoke(*world.flags, "offsets", *words, "-o", "json", **world.surroundings)
    assert done.exit_code == (3 if command == "diff" else 0), done.stderr
    if command == "restore":
        assert world.topics.newest(OWN)[A] == b'{"n":3}'


def test_a_snapshot_of_another_cluster_is_not_restored(run: Run, world: OffsetWorld, invoke: Invoke) -> None:
    """Lines of an export do not name their cluster, and would have been written."""
    path = only_row(run())["file"]
    text = Path(path).read_bytes().replace(b'"memory-cluster"', b'"another"')
    copy = Path(path).with_name("copy.ndjson")
    copy.write_bytes(text)
    done = invoke(*world.flags, "offsets", "restore", str(copy), "--yes", **world.surroundings)
    assert done.exit_code == 6
    damaged = Path(path)
    damaged.write_bytes(damaged.read_bytes()[:-20] + b"\n")
    assert invoke(*world.flags, "offsets", "restore", path, "--yes", **world.surroundings).exit_code == 2


def test_a_damaged_file_is_not_what_has_the_offsets_of_now(run: Run, tmp_path: Path) -> None:
    """It was called unchanged, and with --keep 1 the whole one before it was removed."""
    damaged = Path(only_row(run())["file"])
    damaged.write_bytes(damaged.read_bytes()[:-20])
    again = only_row(run("--keep", "1"))
    assert again["outcome"] == "written"
    assert (tmp_path / "kept" / files(tmp_path)[-1]).read_bytes().count(b"\n") == 5


def test_a_damaged_file_is_not_the_newest_complete_one(run: Run, world: OffsetWorld) -> None:
    whole = Path(only_row(run())["file"])
    world.time.now_s += 3600
    world.topics.put(OWN, A, b'{"n":4}')
    damaged = Path(only_row(run())["file"])
    damaged.write_bytes(damaged.read_bytes()[:-20])
    world.time.now_s += 3600
    world.time.now_s += 3600
    world.topics.open_transaction(GLOBAL, 0)
    world.topics.put(OWN, A, b'{"n":5}')
    assert run("--keep", "1").exit_code == 7
    assert whole.exists(), "the only complete one that is whole"


def test_an_incomplete_one_is_not_written_again_and_does_not_push_others_out(run: Run, world: OffsetWorld) -> None:
    """A hanging transaction had a file each period, and after a night only such were left."""
    world.topics.open_transaction(GLOBAL, 0)
    first = run()
    again = run()
    assert (only_row(again)["outcome"], only_row(again)["file"]) == ("unchanged", only_row(first)["file"])
    assert (again.exit_code, only_row(again)["unseen"]) == (7, 1), "it lacks as much as before"
    world.topics.open_transaction(GLOBAL, 1)
    assert only_row(run())["outcome"] == "written", "it lacks more"


def test_without_a_group_the_files_of_another_offsets_topic_are_not_removed(
    world: OffsetWorld, invoke: Invoke, tmp_path: Path
) -> None:
    """Both of two groups on one cluster had the same scope, and each removed the other's files."""
    world.topics.add_topic("blue", 1)
    world.topics.put("blue", A, b'{"n":1}')

    def take(topic: str) -> dict[str, Any]:
        flags = ["-b", "memory:9092", "-u", world.flags[-1], "--offset-topic", topic]
        words = ["offsets", "snapshot", str(tmp_path / "kept"), "--keep", "1", "-o", "json"]
        done = invoke(*flags, *words, **world.surroundings)
        assert done.exit_code == 0, done.stderr
        return only_row(done)

    blue = take("blue")
    assert take(GLOBAL)["removed"] == []
    assert Path(blue["file"]).exists()
    assert take("blue")["outcome"] == "unchanged"


def test_a_topic_that_is_created_anew_while_it_is_read(run: Run, world: OffsetWorld, tmp_path: Path) -> None:
    """The header had the id of the former topic, and the file records of the new one."""

    def again(_call: Call) -> None:
        world.topics.add_topic(GLOBAL, 2)

    world.topics.before("stream", again)
    assert run().exit_code == 6
    assert files(tmp_path) == []


def test_a_name_that_is_no_text_does_not_end_every_snapshot(run: Run, world: OffsetWorld) -> None:
    """One such connector, and no round wrote anything any more."""
    world.connect.add("\ud800", {"offsets.storage.topic": "${file:/x:y}"}, state="STOPPED")
    done = run()
    assert (done.exit_code, only_row(done)["outcome"]) == (7, "written"), done.stderr
    header = read_header(Path(only_row(done)["file"]).read_bytes().splitlines()[0], name="x")
    assert header is not None
    assert len(header.unseen) == 1


def test_a_connector_that_no_topic_has_an_offset_of(run: Run, world: OffsetWorld) -> None:
    """A slip of the hand gave a complete snapshot of nothing."""
    done = run("--store", "global", "--connector", "nobody")
    assert (done.exit_code, only_row(done)["records"]) == (0, 0)
    assert [each["code"] for each in done.json()["errors"]] == ["snapshot_without_offset"]
    world.connect.add("new", {"connector.class": "FileStreamSource"}, state="STOPPED")
    both = run("--connector", "c", "--connector", "new", "--connector", "c")
    [problem] = both.json()["errors"]
    assert "new" in problem["message"]
    assert only_row(run("--connector", "new", "--connector", "c"))["outcome"] == "unchanged"


def test_without_any_topic_there_is_no_snapshot(run: Run, world: OffsetWorld, tmp_path: Path) -> None:
    """A file without a topic was called written."""
    for name in list(world.connect.connectors):
        world.connect.connectors[name].config.pop("offsets.storage.topic", None)
    assert run("--store", "dedicated").exit_code == 1
    assert files(tmp_path) == []


def test_a_file_from_the_future_is_not_the_newest(run: Run, world: OffsetWorld, tmp_path: Path) -> None:
    """After the clock was put right each round wrote a file, although nothing had changed."""
    world.time.now_s += 86_400
    assert run().exit_code == 0
    world.time.now_s -= 86_400
    world.topics.put(OWN, A, b'{"n":4}')
    now = only_row(run())
    again = only_row(run("--keep", "1"))
    assert (again["outcome"], again["file"]) == ("unchanged", now["file"])
    assert files(tmp_path) == [Path(now["file"]).name]


@pytest.mark.parametrize("name", [",x", "a-b", "a\nb", 'q"x\\', "ü", "\U0001f600", " c "])
def test_connectors_with_odd_names_are_kept(run: Run, world: OffsetWorld, name: str) -> None:
    key = json.dumps([name, {"f": "a"}], ensure_ascii=False, separators=(",", ":")).encode()
    escaped = json.dumps([name, {"f": "b"}]).encode()
    for each in (key, escaped):
        world.topics.put(GLOBAL, each, b'{"n":1}')
    world.connect.add(name, {"connector.class": "FileStreamSource"}, state="STOPPED")
    done = run("--connector", name)
    assert (done.exit_code, only_row(done)["records"], done.json()["errors"]) == (0, 2, []), done.stderr


def test_a_worker_of_another_cluster_does_not_know_the_own_topics(run: Run, world: OffsetWorld, tmp_path: Path) -> None:
    """A wrong -u gave a snapshot that was called complete, without any own topic."""
    world.connect.kafka_cluster_id = "elsewhere"
    world.connect.connectors.clear()
    assert run().exit_code == 6
    assert files(tmp_path) == []
    assert run("--store", "global").exit_code == 0
