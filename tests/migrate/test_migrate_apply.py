"""Applying a plan of `offsets migrate`: who else may write meanwhile, and what makes a run that resumes stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.core.allowances import Allowances
from eosctl.core.configs.records import Selection
from eosctl.core.offsets.migration import MigrationPlan, PlannedTopic
from eosctl.core.offsets.views import Policy
from eosctl.errors import EosctlError, ExitCode, RefusedError, StalePlanError
from eosctl.migrate.apply import apply_plan
from eosctl.migrate.journal import migration_journal
from eosctl.migrate.plan import Migration, MigrationRequest
from eosctl.migrate.run import Engine, migration_from_file, prepared_migration
from eosctl.offsets.writes import offsets_journal
from eosctl.wire.error_codes import CONCURRENT_TRANSACTIONS
from tests.fakes.decided_keys import keep_rows
from tests.fakes.faults import KilledError
from tests.fakes.killed_migration import EXPECTED, OLD, TASKS, KillableScene, backup_rows, someone_writes_once
from tests.fakes.migration import DOWN, SOURCE, connector
from tests.fakes.partitions import FakePartition
from tests.fakes.stages import FakeStages


@pytest.fixture
def scene(tmp_path: Path) -> KillableScene:
    return KillableScene(tmp_path)


def steps_until(scene: KillableScene, happened: Callable[[KillableScene], bool]) -> int:
    """How many steps a run may take so that, killed then, it leaves what `happened` looks for."""
    for steps in range(100):
        other = KillableScene(scene.folder / f"after {steps} steps")
        other.killed_after(steps)
        if happened(other):
            return steps
    raise AssertionError("it never happens")


def events(scene: KillableScene) -> list[tuple[object, object]]:
    journal = migration_journal(scene.plan_folder(), scene.app().clock)
    return [(entry["event"], entry.get("stage")) for entry in journal.entries()]


def is_journaled(event: str, stage: str) -> Callable[[KillableScene], bool]:
    return lambda scene: scene.plan_folder().joinpath("journal.ndjson").exists() and (event, stage) in events(scene)


def test_two_at_once_are_kept_apart(scene: KillableScene) -> None:
    """Neither two runs of one plan, nor a run and any other write of offsets."""
    app = scene.app()
    locks = [
        (migration_journal(scene.plan_folder(), app.clock), f"plan {scene.planned.name()}"),
        (offsets_journal(app, "cluster"), "the offsets of cluster cluster"),
    ]
    for journal, what in locks:
        with journal.hold("it"), pytest.raises(RefusedError, match=f"another eosctl is at work on {what}"):
            scene.run()
    assert "offsets-b" not in scene.topics.topics
    assert scene.run().exit_code is ExitCode.OK


def test_conflicts_are_refused_whoever_applies_the_plan(scene: KillableScene) -> None:
    tally = replace(scene.planned.tally, counts={**scene.planned.tally.counts, "conflict": 2})
    plan = replace(scene.planned, tally=tally)
    scene.plan_folder().rename(Path(plan.snapshot_base) / plan.name())
    with pytest.raises(RefusedError, match="2 keys are in conflict; nothing was written"):
        apply_plan(migration(scene), plan, Allowances(), resume=False)


def migration(scene: KillableScene) -> Migration:
    return Migration(scene.app(), scene.stages, scene.folder / "migrations")


@pytest.mark.parametrize(("side", "other"), [("source", "target"), ("target", "source")])
def test_drift_of_one_side_does_not_excuse_that_of_the_other(scene: KillableScene, side: str, other: str) -> None:
    scene.put(SOURCE if side == "source" else "offsets-a", {OLD: b'{"n":1000}'})
    with pytest.raises(StalePlanError, match=f"the {side} has new offsets of a"):
        scene.run(allowances=Allowances(force_running=True, accept_drift=frozenset({other})))
    assert scene.run(allowances=Allowances(force_running=True, accept_drift=frozenset({side}))).exit_code is ExitCode.OK


@pytest.mark.parametrize("resumed", [False, True])
def test_what_an_accepted_drift_is_written_over_is_in_the_backup(scene: KillableScene, resumed: bool) -> None:
    """The backup was of the plan's time: `restore` brought that back, and the newer value was lost."""
    allowances = Allowances(force_running=True, accept_drift=frozenset({"target"}))
    undisturbed = KillableScene(scene.folder / "undisturbed").run().data.backup
    before = {row["key"]: row["value"] for row in backup_rows(undisturbed)}
    if resumed:
        scene.killed_after(steps_until(scene, is_journaled("started", "write")))
    scene.put("offsets-a", {OLD: b'{"n":1000}'})
    scene.topics.put("offsets-a", b'["a",{"p":1}]', b'{"n":1}')
    result = scene.run(resume=resumed, allowances=allowances)
    assert result.exit_code is ExitCode.OK
    kept = {row["key"]: row["value"] for row in backup_rows(result.data.backup)}
    assert kept == {**before, OLD: b'{"n":1000}'}


def killed_at(scene: KillableScene, call: str, *, done: bool = False, **how: Any) -> None:
    """A run that ends when this is called the next time, or is `done`."""
    scene.stages.fail_next(call, KilledError(), done=done)
    with pytest.raises(KilledError):
        scene.run(**how)


def test_what_a_killed_run_was_allowed_to_write_over_stays_in_the_backup(scene: KillableScene) -> None:
    """The next run finds the plan's own value there, and what was there before is nowhere but in the backup."""
    allowances, late = Allowances(force_running=True, accept_drift=frozenset({"target"})), b'["a",{"p":1}]'
    scene.put("offsets-a", {OLD: b'{"n":1000}'})
    killed_at(scene, "write", done=True, allowances=allowances)
    scene.put("offsets-a", {late: b'{"n":2000}'})
    result = scene.run(resume=True, allowances=allowances)
    assert (result.exit_code, scene.target()) == (ExitCode.OK, EXPECTED)
    kept = {row["key"]: row["value"] for row in backup_rows(result.data.backup)}
    assert (kept[OLD], kept[late]) == (b'{"n":1000}', b'{"n":2000}')


def test_a_task_of_a_killed_run_that_ends_late_replaces_no_file(scene: KillableScene) -> None:
    """Its Python process may outlive the driver: what it found took the place of what --resume had just found."""
    folders, unwritten = list[Path](), scene.stages.unwritten

    def beside_an_orphan(folder: Path, plan: MigrationPlan, targets: Sequence[PlannedTopic], into: Path) -> int:
        found = unwritten(folder, plan, targets, into)
        for earlier in folders:
            keep_rows(earlier, [])
        folders.append(into)
        return found

    scene.stages.unwritten = beside_an_orphan  # type: ignore[method-assign]
    killed_at(scene, "transaction")
    killed_at(scene, "transaction", resume=True)
    result = scene.run(resume=True)
    assert (result.exit_code, scene.target()) == (ExitCode.OK, EXPECTED)
    assert len(set(folders)) == 2


@pytest.mark.parametrize("topic", [SOURCE, "offsets-a"])
def test_partitions_that_were_added_since_are_drift(scene: KillableScene, topic: str) -> None:
    """Keys have another home then; the plan's records went to the old one, and the new partition was not read."""
    scene.brokers.state.topics[topic].partitions.append(FakePartition())
    with pytest.raises(StalePlanError, match=f"topic {topic} has 4 partitions, the plan says 3"):
        scene.run(allowances=Allowances(force_running=True, accept_drift=frozenset({"source", "target"})))
    assert scene.topics.writes == 0


def test_a_connector_that_is_started_meanwhile_stops_the_write(scene: KillableScene) -> None:
    """Whether it runs was asked before the snapshot of what moved and the backup, which may take minutes."""
    stopped = {name: connector("STOPPED") for name in ("a", "b")}
    scene.place(stopped)
    scene.stages.after("backup", lambda _call: scene.place({**stopped, "b": connector("RUNNING", 1)}))
    refused = scene.run(allowances=Allowances())
    assert (refused.exit_code, refused.problems[0].code) == (ExitCode.REFUSED, "refused")
    assert refused.problems[0].message == "not stopped: b (RUNNING, 1 task); nothing was written"
    assert [row.outcome for row in refused.rows] == ["done", "done", "failed", "not_reached"]
    assert not [call for call in scene.calls if call.startswith("write")]
    scene.place(stopped)
    assert scene.run(resume=True, allowances=Allowances()).exit_code is ExitCode.OK


@pytest.mark.parametrize("topic", [SOURCE, "offsets-a"])
def test_what_an_open_transaction_may_hide_since_the_plan_was_made(scene: KillableScene, topic: str) -> None:
    scene.topics.open_transaction(topic, 0)
    with pytest.raises(RefusedError, match=f"an open transaction on {topic}-0 may hide committed offsets"):
        scene.run()
    scene.topics.close_transaction(topic, 0)
    assert scene.run().exit_code is ExitCode.OK


def test_a_topic_that_someone_else_makes_before_its_turn_is_not_taken_for_ours(scene: KillableScene) -> None:
    scene.killed_after(steps_until(scene, is_journaled("done", "backup")))
    scene.topics.add_topic("offsets-b", 3)
    with pytest.raises(StalePlanError, match="topic offsets-b was created since the plan was made"):
        scene.run(resume=True)


def test_a_topic_that_was_there_before_is_never_ours(scene: KillableScene) -> None:
    """Of those that the plan makes some may be there by now; that says nothing of one that it found."""
    scene.killed_after(steps_until(scene, is_journaled("done", "create")))
    scene.topics.add_topic("offsets-a", 3)
    with pytest.raises(StalePlanError, match="topic offsets-a was recreated since the plan was made"):
        scene.run(resume=True)


def test_a_backup_that_is_gone_is_made_again(scene: KillableScene) -> None:
    """It is of the snapshot, so that it does not matter what was written since."""
    undisturbed = KillableScene(scene.folder / "undisturbed")
    undisturbed.run()
    scene.killed_after(steps_until(scene, is_journaled("started", "write")))
    scene.backup_file().unlink()
    assert scene.run(resume=True).exit_code is ExitCode.OK
    assert scene.backup() == undisturbed.backup()


def test_a_backup_that_lacks_records_is_not_kept_and_nothing_is_sent(scene: KillableScene) -> None:
    """A late attempt of a task used to cut off lines that were there, and nobody counted them."""
    scene.stages.lost_records = 1
    result = scene.run()
    assert result.exit_code is not ExitCode.OK
    assert "and the plan sends" in " ".join(problem.message for problem in result.problems)
    assert not scene.backup_file().exists()
    assert not any(entry == ("started", "write") for entry in events(scene))
    scene.stages.lost_records = 0
    assert scene.run(resume=True).exit_code is ExitCode.OK


@pytest.mark.parametrize("last", [("started", "write"), ("started", "verify")])
def test_a_run_that_resumes_writes_with_as_many_tasks_as_before(tmp_path: Path, last: tuple[str, str]) -> None:
    """More tasks would give partitions to other ids, and a killed task that still writes would not be fenced."""
    scene = KillableScene(tmp_path)
    scene.killed_after(steps_until(scene, is_journaled(*last)))
    scene.put("offsets-a", {OLD: b'{"n":1000}'})
    scene.stages.parallelism = TASKS + 5
    assert scene.stages.least_parts(1_000_000) > TASKS
    allowances = Allowances(force_running=True, accept_drift=frozenset({"target"}))
    assert scene.run(resume=True, allowances=allowances).exit_code is ExitCode.OK
    assert set(scene.fenced) == {f"{scene.planned.transactional_id()}-{task}" for task in range(TASKS)}
    assert {call.rpartition(" ")[2] for call in scene.calls if call.startswith("write")} == {str(TASKS)}
    assert scene.target() == EXPECTED


def test_a_write_that_is_done_again_and_killed_is_not_over(tmp_path: Path) -> None:
    """It had ended in an earlier run, whose comparison found that the target differs."""
    allowances = Allowances(force_running=True, accept_drift=frozenset({"target"}))
    kills = 0
    while True:
        scene = KillableScene(tmp_path / f"killed after {kills}")
        someone_writes_once(scene)
        assert scene.run().exit_code is ExitCode.PARTIAL
        try:
            scene.run(resume=True, allowances=allowances, steps=kills)
        except KilledError:
            pass
        else:
            break
        assert scene.run(resume=True, allowances=allowances).exit_code is ExitCode.OK, f"killed after step {kills}"
        assert scene.target() == EXPECTED, f"killed after step {kills}"
        kills += 1
    assert kills > 8


def test_a_writer_whose_fencing_nothing_confirms_stops_everything(scene: KillableScene) -> None:
    scene.killed_after(steps_until(scene, lambda killed: bool(killed.open_ids())))
    scene.brokers.fail_next("InitProducerId", *[CONCURRENT_TRANSACTIONS] * 10_000)
    before = scene.target()
    with pytest.raises(EosctlError, match="can't be fenced, so a killed task may still write; nothing was written"):
        scene.run(resume=True)
    assert scene.target() == before


def test_a_refusal_in_the_middle_tells_itself_what_to_do_first(scene: KillableScene) -> None:
    """With --resume at once it would be refused again."""
    scene.killed_after(steps_until(scene, is_journaled("done", "backup")))
    scene.topics.fail_next("create_all", StalePlanError("topic offsets-b is another", hint="Look at it."))
    assert [problem.hint for problem in scene.run(resume=True).problems] == ["Look at it."]


@pytest.mark.parametrize("from_file", [True, False])
def test_spark_is_left_as_after_an_error_where_a_run_was_cut_off(scene: KillableScene, *, from_file: bool) -> None:
    """Its classes were kept for the next time, by a JVM that may not answer any more."""
    left: list[str] = []

    @contextmanager
    def opened() -> Iterator[FakeStages]:
        try:
            yield scene.stages
            left.append("at its end")
        except Exception:
            left.append("by an error")
            raise

    engine = Engine(scene.folder / "migrations", open_stages=opened)
    interrupted = partial(scene.topics.fail_next, "create_all", KeyboardInterrupt())
    if from_file:
        plan = migration_from_file(
            scene.app(), scene.planned, engine, allowances=DOWN, plan_file=Path("plan.json"), resume=False
        )
        assert plan.apply is not None
        interrupted()
        report = plan.apply()
    else:
        request = MigrationRequest(
            selection=Selection(all_connectors=True), dedicated_topic="offsets-{connector}", policy=Policy.TAKE_SOURCE
        )
        with prepared_migration(scene.app(), request, engine, allowances=DOWN) as plan:
            assert plan.apply is not None
            interrupted()
            report = plan.apply()
    assert (report.exit_code, left) == (ExitCode.INTERRUPTED, ["by an error"])


def test_what_was_written_is_compared_once_it_can_be_seen(scene: KillableScene) -> None:
    """Brokers answer a commit before its markers are in all partitions: read at once, the target would differ."""
    scene.brokers.state.late_markers = 100
    result = scene.run()
    assert (result.exit_code, result.summary.differing) == (ExitCode.OK, 0)
