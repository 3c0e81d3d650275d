"""What stands between a plan and its writes: staleness, backups, and deletions first."""

from __future__ import annotations

import json
import resource
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.offsets.names import partition_for
from eosctl.core.offsets.views import Prefer
from eosctl.engine import files as grouped
from eosctl.errors import EosctlError, InputFileError, RefusedError, StalePlanError
from eosctl.migrate.rows import MismatchRow
from eosctl.migrate.run import verify_backup
from eosctl.offsets.apply import apply_plan, prepare_writes
from eosctl.offsets.edit.edit import ResetRequest, plan_offsets_reset
from eosctl.offsets.files import backup
from eosctl.offsets.files.restore import RestoreRequest, plan_restore
from eosctl.offsets.writes import MergeRequest, plan_offsets_merge
from eosctl.ports import TopicClient
from eosctl.state.backups import read_backup, write_lines
from tests.fakes.connectors import FakeTask
from tests.fakes.faults import Call
from tests.fakes.offset_topics import GLOBAL, IN_OWN, OWN, WORKER, A, B, OffsetWorld, merge_world

FOLLOWER = "http://follower:8083"
INTO_OWN = MergeRequest(("c",), into="dedicated", prefer=Prefer.NEWEST)


@pytest.fixture
def world() -> OffsetWorld:
    return merge_world()


def apply(app: App, planned_with: MergeRequest = INTO_OWN) -> str:
    plan = plan_offsets_merge(app, planned_with)
    report = apply_plan(app, plan, lambda: plan_offsets_merge(app, planned_with))
    assert report.exit_code == 0
    return str(report.data.backup)


def test_a_backup_and_its_restore_are_exact_inverses(app: App, world: OffsetWorld) -> None:
    path = apply(app)
    assert world.topics.newest(OWN) == {A: b"1", B: None}
    plan = plan_restore(app, RestoreRequest(path))
    again = apply_plan(app, plan, lambda: plan_restore(app, RestoreRequest(path)))
    assert world.topics.newest(OWN) == {A: None, B: b"2"}
    redo = RestoreRequest(str(again.data.backup))
    apply_plan(app, plan_restore(app, redo), lambda: plan_restore(app, redo))
    assert world.topics.newest(OWN) == {A: b"1", B: None}, "a restore can be taken back too"
    assert [write.reason for write in plan_restore(app, redo).writes] == ["equal", "equal"]


@pytest.mark.parametrize("rows_at_once", [1, 2, 3])
def test_a_backup_that_does_not_fit_is_restored_and_verified_part_by_part(
    app: App, world: OffsetWorld, monkeypatch: pytest.MonkeyPatch, rows_at_once: int
) -> None:
    """It took 5 KB of memory a key: no backup of a migration of millions could be restored."""
    for number in range(40):
        world.topics.put(GLOBAL, b'["c",{"f":"%d"}]' % number, b"new")
        if number % 2:
            world.topics.put(OWN, b'["c",{"f":"%d"}]' % number, b"old", partition=number % 5)
    before = world.topics.newest(OWN)
    path = apply(app, MergeRequest(("c",), into="dedicated", prefer=Prefer.GLOBAL))
    after = world.topics.newest(OWN)
    request = RestoreRequest(path, overwrite_newer=True)
    world.topics.put(OWN, b'["c",{"f":"1"}]', b"newer", partition=1)
    whole = plan_restore(app, request)
    monkeypatch.setattr(grouped, "PART_RECORDS", rows_at_once)
    monkeypatch.setattr(backup, "AT_ONCE", rows_at_once)
    plan = plan_restore(app, request)
    assert len(list(plan.writes.tables())) == 5, "a part for each partition"
    assert sorted(plan.writes, key=str) == sorted(whole.writes, key=str)
    assert plan.details == whole.details
    assert [row.status for row in verify_backup(app, Path(path)).rows_of(MismatchRow)] == ["differs"]
    done = apply_plan(app, plan, lambda: plan_restore(app, request))
    assert (int(done.exit_code), done.summary.written) == (0, 41)
    assert world.topics.newest(OWN) == dict.fromkeys(after) | before
    assert verify_backup(app, Path(path), before=True).exit_code == 0
    assert list((app.state_dir / "parts").iterdir()) == []


def test_of_very_many_keys_that_differ_the_first_are_shown_and_all_are_counted(app: App, world: OffsetWorld) -> None:
    """A row was kept in memory for each: gigabytes where workers had gone on after a migration of millions."""
    for number in range(150):
        world.topics.put(GLOBAL, b'["c",{"f":"%d"}]' % number, b"new")
    path = apply(app)
    for number in range(150):
        world.topics.put(OWN, b'["c",{"f":"%d"}]' % number, b"later")
    report = verify_backup(app, Path(path))
    assert (int(report.exit_code), len(report.rows), report.summary["target_differing"]) == (3, 100, 150)
    [problem] = report.problems
    assert str(problem.hint).startswith("The first 100 are shown.")


@pytest.mark.parametrize("read", [0, 1, 3])
def test_a_disk_that_is_full_is_an_error_before_anything_is_written(
    app: App, world: OffsetWorld, monkeypatch: pytest.MonkeyPatch, read: int
) -> None:
    """A restore ended with a traceback where the second part of its plan did not fit."""
    world.topics.put(GLOBAL, b'["c",{"f":"%d"}]' % 1, b"new")
    path = apply(app)
    monkeypatch.setattr(grouped, "PART_RECORDS", 1)
    monkeypatch.setattr(backup, "AT_ONCE", 1)
    parts, writes, reads = app.state_dir / "parts", world.topics.writes, count(1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill_up(_call: Call) -> None:
        if next(reads) == read:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))

    if not read:
        parts.write_text("no folder")
    world.topics.before("read", fill_up)
    try:
        with pytest.raises(EosctlError, match=f"cannot write {parts}: ") as caught:
            plan_restore(app, RestoreRequest(path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (caught.value.exit_code, world.topics.writes) == (1, writes)
    assert "Nothing was written" in str(caught.value.hint)


def test_a_plan_that_is_made_again_has_the_whole_time_too(app: App, world: OffsetWorld) -> None:
    """On a live cluster the topics have always moved: what planning had left of the time was all that there was."""
    request, left = RestoreRequest(apply(app)), list[float]()

    def open_topics(here: App) -> TopicClient:
        left.append(here.deadline.remaining_s())
        return world.topics.open(here)

    plan = prepare_writes(replace(app, open_topics=open_topics), partial(plan_restore, request=request))
    world.time.sleep(10 * app.deadline.timeout_s)
    world.topics.put(OWN, b"of nobody", b"1")
    left.clear()
    assert plan.apply is not None
    assert plan.apply().exit_code == 0
    assert min(left) > 0


def test_the_backup_says_what_was_there_and_what_was_put_over_it(app: App) -> None:
    found = {entry.before.key: entry for entry in read_backup(apply(app))}
    assert {key: (e.before.value, e.before.offset < 0, e.written) for key, e in found.items()} == {
        A: (None, True, b"1"),
        B: (b"2", False, None),
    }
    assert {entry.cluster_id for entry in found.values()} == {"memory-cluster"}


def test_the_backup_is_there_before_the_first_write(app: App, world: OffsetWorld, tmp_path: Path) -> None:
    (tmp_path / "backups").write_text("not a directory")
    with pytest.raises(EosctlError, match="cannot write"):
        apply(app)
    assert world.topics.writes == 0


def test_deletions_are_sent_first(app: App, world: OffsetWorld) -> None:
    apply(app)
    assert [record.key for record in world.topics.records(OWN)] == [B, B, A]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("source", "these offsets changed since the plan was made"),
        ("target", "these offsets changed since the plan was made"),
        ("topic", "topic own was created, deleted or recreated since the plan"),
        ("cluster", "the plan is for cluster memory-cluster, this is another-cluster"),
    ],
)
def test_a_plan_goes_stale(app: App, world: OffsetWorld, change: str, complaint: str) -> None:
    plan = plan_offsets_merge(app, INTO_OWN)
    if change in ("source", "target"):
        world.topics.put(GLOBAL if change == "source" else OWN, A, b"7")
    elif change == "topic":
        world.topics.add_topic(OWN, 5)
        world.topics.put(OWN, B, b"2")
    else:
        world.topics.state.cluster_id = world.connect.kafka_cluster_id = "another-cluster"
    with pytest.raises(StalePlanError, match=complaint):
        apply_plan(app, plan, lambda: plan_offsets_merge(app, INTO_OWN))
    assert world.topics.writes == 0


def test_others_may_go_on_in_the_global_topic(app: App, world: OffsetWorld) -> None:
    """The global topic of a live cluster never stands still; only the plan's own connectors count."""
    plan = plan_offsets_merge(app, INTO_OWN)
    world.topics.put(GLOBAL, b'["other",{}]', b"1")
    assert apply_plan(app, plan, lambda: plan_offsets_merge(app, INTO_OWN)).exit_code == 0


def test_a_connector_that_was_started_after_the_question_stops_the_write(app: App, world: OffsetWorld) -> None:
    plan = plan_offsets_merge(app, INTO_OWN)
    world.connect.add("c", IN_OWN)
    with pytest.raises(RefusedError, match="not stopped"):
        apply_plan(app, plan, lambda: plan_offsets_merge(app, INTO_OWN))
    assert world.topics.writes == 0


def test_what_would_be_refused_is_never_asked_for_and_a_dry_run_says_so(app: App, world: OffsetWorld) -> None:
    world.connect.add("c", IN_OWN)
    with pytest.raises(RefusedError, match="not stopped: c"):
        prepare_writes(app, partial(plan_offsets_merge, request=INTO_OWN)).report()
    (problem,) = prepare_writes(app, partial(plan_offsets_merge, request=INTO_OWN)).report(dry_run=True).problems
    assert (problem.code, problem.severity) == ("refused", "warning")
    assert problem.message.startswith("would be refused: not stopped: c")


def test_where_nothing_is_to_be_written_nobody_is_asked_whether_tasks_run(app: App, world: OffsetWorld) -> None:
    """A second run of a job that has done its work needs no worker."""
    request = RestoreRequest(apply(app))
    apply_plan(app, plan_restore(app, request), lambda: plan_restore(app, request))
    world.connect.down.add(WORKER)
    assert prepare_writes(app, partial(plan_restore, request=request)).report().problems == []


def test_a_topic_is_only_made_for_offsets_that_are_written(app: App, world: OffsetWorld) -> None:
    world.connect.add("c", {"offsets.storage.topic": "new"}, state="STOPPED")
    world.topics.put(GLOBAL, A, None)
    plan = plan_offsets_merge(app, INTO_OWN)
    assert ([write.topic for write in plan.writes], list(plan.sends()), plan.creates) == (["new", "new"], [], ())
    world.topics.put(GLOBAL, A, b"1")
    assert [new.topic for new in plan_offsets_merge(app, INTO_OWN).creates] == ["new"]


@pytest.mark.parametrize("ends_s", [3.0, 600.0])
def test_a_task_that_rest_shows_no_more_is_waited_for_a_little_while(tmp_path: Path, ends_s: float) -> None:
    """A follower's task writes its last offsets when REST shows STOPPED without tasks: they came after the merge's."""
    world = merge_world()
    world.connect.modes[FOLLOWER] = "enabled"
    world.connect.add("c", IN_OWN)
    world.connect.own(FOLLOWER, ("c", 0))
    world.connect.stops_slowly["c", 0] = ends_s
    ended: list[float] = []
    world.connect.after("end_task", lambda _call: ended.append(world.time.now_s))
    world.connect.worker().set_state("c", "stop")
    world.time.sleep(0.5)
    app = world.app(tmp_path, timeout_s=60)
    plan = plan_offsets_merge(app, INTO_OWN)
    if ends_s < 10:
        assert apply_plan(app, plan, lambda: plan_offsets_merge(app, INTO_OWN)).exit_code == 0
        assert ended, "nothing was written before"
        return
    with pytest.raises(RefusedError, match=f"still ending: task 0 of c at {FOLLOWER}; nothing was written"):
        apply_plan(app, plan, lambda: plan_offsets_merge(app, INTO_OWN))
    assert (ended, world.topics.writes) == ([], 0)


@pytest.mark.parametrize(("at", "refused"), [(FOLLOWER, False), ("http://stranger:8083", True)])
def test_a_task_that_rest_still_shows_after_its_end_keeps_nobody_from_writing(
    tmp_path: Path, at: str, refused: bool
) -> None:
    """ "STOPPED, 1 task" was refused for minutes, though no member of the group had a task of the connector."""
    world = merge_world()
    world.connect.modes[FOLLOWER] = "enabled"
    world.connect.add("c", IN_OWN, state="STOPPED").tasks[0] = FakeTask("UNASSIGNED", at)
    app = world.app(tmp_path)
    plan = plan_offsets_merge(app, INTO_OWN)
    if refused:
        with pytest.raises(RefusedError, match=r"not stopped: c \(STOPPED, 1 task\)"):
            apply_plan(app, plan, lambda: plan_offsets_merge(app, INTO_OWN))
        return
    assert apply_plan(app, plan, lambda: plan_offsets_merge(app, INTO_OWN)).exit_code == 0


def test_a_dedicated_topic_on_other_brokers_is_refused(app: App, world: OffsetWorld) -> None:
    elsewhere = {"producer.override.bootstrap.servers": "elsewhere:9092"}
    world.connect.add("c", {**IN_OWN, **elsewhere}, state="STOPPED")
    with pytest.raises(RefusedError, match="brokers of its own"):
        plan_offsets_merge(app, INTO_OWN)


def test_a_record_on_the_wrong_partition_is_replaced_where_it_is(app: App, world: OffsetWorld) -> None:
    """The write used to go to murmur2's partition: then there were two, and a worker might have taken the old one."""
    wrong = (world.topics.put(OWN, A, b"0").partition + 1) % 5
    world.topics.add_topic(OWN, 5)
    world.topics.put(OWN, A, b"0", partition=wrong)
    world.topics.put(GLOBAL, A, b"9")
    plan = plan_offsets_merge(app, INTO_OWN)
    assert [problem.code for problem in plan.problems] == ["wrong_partition"]
    entry = next(entry for entry in read_backup(apply(app)) if entry.before.key == A)
    assert (entry.before.partition, entry.before.value, entry.before.offset < 0) == (wrong, b"0", False)


@pytest.mark.parametrize("also_at_home", [False, True])
def test_what_an_open_transaction_hides_beside_a_record_on_the_wrong_partition_is_waited_for(
    app: App, world: OffsetWorld, also_at_home: bool
) -> None:
    """Whoever put one there may be at it again; only the partition where Connect puts the key used to be looked at."""
    home = partition_for(A, 5)
    wrong = (home + 1) % 5
    world.topics.put(OWN, A, b"0", partition=wrong)
    if also_at_home:
        world.topics.put(OWN, A, b"1")  # the newest that can be seen
    world.topics.open_transaction(OWN, wrong)
    world.topics.put(OWN, A, b"9", partition=wrong)
    with pytest.raises(RefusedError, match=f"topic own, partition {wrong}: an open transaction hides newer offsets"):
        plan_offsets_merge(app, INTO_OWN)
    world.topics.close_transaction(OWN, wrong)
    plan_offsets_merge(app, INTO_OWN)


def test_an_offset_that_one_store_shows_may_be_hidden_in_the_other(app: App, world: OffsetWorld) -> None:
    """Only the keys that a store shows were looked for in it: an older offset was put over the hidden one."""
    home = partition_for(A, 5)
    world.topics.open_transaction(OWN, home)
    world.topics.put(OWN, A, b"9")
    with pytest.raises(RefusedError, match=f"topic own, partition {home}: an open transaction hides newer offsets"):
        plan_offsets_merge(app, INTO_OWN)
    world.topics.close_transaction(OWN, home)
    assert A not in [write.key.raw for write in plan_offsets_merge(app, INTO_OWN).sends()]


NEW = b'["c",{"table":"new"}]'
"""A key that nothing shows yet: the first offset of a new table."""


@pytest.mark.parametrize("topic", [GLOBAL, OWN])
@pytest.mark.parametrize("open_key", [NEW, b'["other",{}]'], ids=["its-own-transaction", "behind-anothers"])
def test_a_first_offset_that_an_open_transaction_hides_is_not_passed_over(
    app: App, world: OffsetWorld, topic: str, open_key: bytes
) -> None:
    """Only keys that a store showed were looked for: a merge ended without it, and a reset left it alive."""
    world.topics.open_transaction(topic, partition_for(NEW, 5), key=open_key)
    if open_key != NEW:
        world.topics.put(topic, NEW, b"9")
    told = f"topic {topic}, partition {partition_for(NEW, 5)}: an open transaction hides newer offsets of c$"
    with pytest.raises(RefusedError, match=told):
        plan_offsets_merge(app, INTO_OWN)
    with pytest.raises(RefusedError, match=told):
        plan_offsets_reset(app, ResetRequest("c", (), everything=True))


def test_what_an_open_transaction_hides_of_others_is_in_nobodys_way(app: App, world: OffsetWorld) -> None:
    """Any open transaction on the partition of a key used to stop the merge of a connector that has nothing in it."""
    for topic in (GLOBAL, OWN):
        world.topics.open_transaction(topic, partition_for(A, 5), key=b'["other",{}]')
    report = apply_plan(app, plan_offsets_merge(app, INTO_OWN), lambda: plan_offsets_merge(app, INTO_OWN))
    assert (int(report.exit_code), {row.outcome for row in report.rows}) == (0, {"written"})
    (told,) = [problem for problem in report.problems if problem.code == "open_transaction"]
    assert (told.severity, told.message[:57]) == (
        "warning",
        "1 of them are committed, but lie behind an open transacti",
    )


def test_the_backup_of_another_cluster_is_refused(app: App, tmp_path: Path) -> None:
    path = Path(apply(app))
    other = tmp_path / "other.ndjson"
    other.write_text(path.read_text().replace("memory-cluster", "another-cluster"))
    with pytest.raises(RefusedError, match="a backup of cluster another-cluster"):
        plan_restore(app, RestoreRequest(str(other)))


def test_a_record_file_without_what_was_written_is_restored_with_a_warning(app: App, tmp_path: Path) -> None:
    """Backups of `migrate` and files by hand have no `written` member."""
    path = tmp_path / "plain.ndjson"
    line = {"topic": OWN, "partition": 0, "offset": 5, "key": A.decode(), "value": "3"}
    path.write_text(json.dumps(line) + "\n")
    plan = plan_restore(app, RestoreRequest(str(path)))
    assert [(w.reason, w.after, w.partition) for w in plan.writes] == [("restored", b"3", 0)]
    assert [problem.code for problem in plan.problems] == ["unchecked", "wrong_partition"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "holds no records"),
        (b"{}\n", "line 1"),
        (b'{"topic":"own","partition":0,"key":null,"value":null}\n', "without a key"),
        (b'{"topic":"own","partition":0,"key":"k","value":null,"written":7}\n', "written"),
    ],
)
def test_files_that_are_no_backups(app: App, tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "backup.ndjson"
    path.write_bytes(content)
    with pytest.raises(InputFileError, match=complaint):
        plan_restore(app, RestoreRequest(str(path)))


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("before\n")

    def breaks_off() -> object:
        yield "half"
        raise EosctlError("stop")

    with pytest.raises(EosctlError, match="stop"):
        write_lines(path, breaks_off())  # type: ignore[arg-type]
    assert path.read_text() == "before\n"
    write_lines(path, ["after"])
    assert path.read_text() == "after\n"
    assert path.stat().st_mode & 0o077 == 0
