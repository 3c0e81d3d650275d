"""A migration that is killed at every step there is, and resumed: the target ends as if nothing had happened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from eosctl.core.allowances import Allowances
from eosctl.core.configs.records import Selection
from eosctl.deadline import Clock
from eosctl.errors import EosctlError, ExitCode, RefusedError, StalePlanError
from eosctl.migrate.journal import Stage, migration_journal, read_earlier_runs
from eosctl.offsets.files.restore import RestoreRequest, plan_restore
from tests.fakes.faults import KilledError
from tests.fakes.killed_migration import EXPECTED, KEYS, OLD, TASKS, KillableScene, someone_writes_once


@pytest.fixture
def scene(tmp_path: Path) -> KillableScene:
    return KillableScene(tmp_path)


def undisturbed(folder: Path) -> tuple[int, list[str]]:
    """How many steps a run takes, and its backup."""
    scene = KillableScene(folder)
    result = scene.run()
    assert (result.exit_code, scene.target()) == (ExitCode.OK, EXPECTED)
    assert (result.summary.sent, result.summary.already_written, result.data.skipped) == (6, 0, [])
    assert scene.fenced == []
    return scene.kill.ticks, scene.backup()


def test_killed_at_every_step(tmp_path: Path) -> None:
    steps, backup = undisturbed(tmp_path / "undisturbed")
    assert steps > 25
    seen = set()
    for step in range(steps):
        scene = KillableScene(tmp_path / f"killed-{step}")
        scene.killed_after(step)
        result = scene.run(resume=True)
        assert (result.exit_code, scene.target()) == (ExitCode.OK, EXPECTED), f"killed after step {step}"
        assert (result.summary.verified, result.summary.differing) == (6, 0)
        assert int(str(result.summary.sent)) + int(str(result.summary.already_written)) == 6
        assert scene.backup() == backup
        assert not scene.open_ids(), "a transaction was left open"
        seen.add(tuple(cast("list[str]", result.data.skipped)))
    assert seen >= {(), ("backup",), ("backup", "create"), ("backup", "create", "write")}


def test_killed_twice(tmp_path: Path) -> None:
    """The second run is one that resumes; it must leave as much behind as the first."""
    steps, _backup = undisturbed(tmp_path / "undisturbed")
    for first in range(0, steps, 3):
        for second in range(0, steps, 4):
            scene = KillableScene(tmp_path / f"killed-{first}-{second}")
            scene.killed_after(first)
            try:
                scene.run(resume=True, steps=second)
            except KilledError:
                scene.run(resume=True)
            assert scene.target() == EXPECTED, f"killed after steps {first} and {second}"


def test_what_was_begun_is_not_begun_again(scene: KillableScene) -> None:
    scene.killed_after(20)
    with pytest.raises(RefusedError, match="begun and cut off") as refused:
        scene.run()
    assert "--resume" in str(refused.value.hint)


def test_a_stage_that_began_again_is_not_over(tmp_path: Path) -> None:
    journal = migration_journal(tmp_path, Clock())
    for stage in Stage:
        journal.write("started", stage=stage.value)
        journal.write("done", stage=stage.value)
    journal.write("started", stage=Stage.WRITE.value)
    assert read_earlier_runs(journal).done == {Stage.BACKUP, Stage.CREATE, Stage.CLEAN}


def test_a_finished_plan_is_verified_again_and_not_written(scene: KillableScene) -> None:
    """What the journal says of the comparison was told as if it were so now. Its connectors run again by then."""
    scene.run()
    with pytest.raises(RefusedError, match="was applied before"):
        scene.run()
    result = scene.run(resume=True, allowances=Allowances())
    assert (result.exit_code, result.summary.sent, result.summary.already_written) == (ExitCode.OK, 0, 6)
    assert (result.data.skipped, result.summary.verified) == (["backup", "create", "write"], 6)
    scene.put("offsets-a", {OLD: b'{"n":1000}'})
    result = scene.run(resume=True, allowances=Allowances())
    assert (result.exit_code, result.summary.sent, result.summary.differing) == (ExitCode.PARTIAL, 0, 1)
    assert scene.committed("offsets-a")[OLD].value == b'{"n":1000}'


def test_a_finished_plan_whose_target_is_gone_is_not_verified_and_can_be_planned_anew(scene: KillableScene) -> None:
    """It told `verified` from the journal; a fresh plan had the digest of the finished one, and so was refused."""
    first = scene.plan(selection=Selection(("b",)))
    assert scene.apply(first).exit_code is ExitCode.OK
    del scene.topics.topics["offsets-b"]
    gone = scene.apply(first, resume=True)
    assert (gone.exit_code, gone.summary.verified, gone.summary.differing) == (ExitCode.PARTIAL, 0, 3)
    assert {row.status for row in gone.rows} == {"missing"}
    scene.time.sleep(0.001)
    again = scene.plan(selection=Selection(("b",)))
    assert again.planned_at > first.planned_at
    assert again.digest() != first.digest()
    assert scene.apply(again).summary.verified == 3


def test_resuming_ends_the_transactions_that_a_killed_task_left_open(scene: KillableScene) -> None:
    """They would hide the target from everyone for ten minutes."""
    scene.killed_after(_step_of_the_first_record(scene) + 2)
    assert scene.open_ids()
    scene.run(resume=True)
    assert scene.fenced == [f"{scene.planned.transactional_id()}-{task}" for task in range(TASKS)]
    assert scene.target() == EXPECTED


@pytest.mark.parametrize(
    ("ending", "exit_code"),
    [
        (EosctlError("writing failed", hint="See the log."), ExitCode.FAILED),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
    ],
)
def test_a_write_that_fails_leaves_no_transaction_open_and_says_what_was_done(
    scene: KillableScene, ending: BaseException, exit_code: ExitCode
) -> None:
    """They used to hide the target, from Connect's workers too, until someone resumed or ten minutes were over.

    Only the error was left: neither the stages that were over, nor the backup.
    """
    steps = _step_of_the_first_record(scene) + 2
    scene.kill.error = lambda: ending
    report = scene.run(steps=steps)
    assert (report.exit_code, scene.open_ids()) == (exit_code, [])
    assert [(row.stage, row.outcome) for row in report.rows] == [
        ("backup", "done"), ("create", "done"), ("write", "failed"), ("verify", "not_reached"),
    ]  # fmt: skip
    assert report.rows[0].detail == report.data.backup == str(scene.backup_file())
    assert (report.summary.sent, report.data.created) == (None, ["offsets-b"]), "a part of it may be committed"
    scene.run(resume=True)
    assert scene.target() == EXPECTED


def test_an_error_says_how_to_go_on(scene: KillableScene) -> None:
    scene.kill.error = lambda: EosctlError("writing failed", hint="See the log.")
    (problem,) = scene.run(steps=_step_of_the_first_record(scene)).problems
    again = f"eosctl offsets migrate --plan {scene.plan_folder() / 'plan.json'} --yes --resume"
    assert problem.hint == f"See the log. Go on with: {again}"


def test_a_failed_write_that_cannot_be_fenced_is_still_the_failed_write(scene: KillableScene) -> None:
    steps = _step_of_the_first_record(scene) + 2
    scene.kill.error = lambda: EosctlError("writing failed")
    scene.brokers.state.late_markers = 10**6
    assert [problem.message for problem in scene.run(steps=steps).problems] == ["writing failed"]


def _step_of_the_first_record(scene: KillableScene) -> int:
    """Counted on a copy that is not killed."""
    other, seen = KillableScene(scene.folder / "counted"), list[int]()
    other.stages.before("transaction", lambda _call: seen.append(other.kill.ticks))
    other.run()
    return seen[0]


def test_what_someone_wrote_since_a_kill_is_written_over_where_that_is_allowed_whatever_was_done(
    tmp_path: Path,
) -> None:
    """Killed while the target was read back, the next run backed the other's value up, wrote nothing and ended in 7."""
    steps, _backup = undisturbed(tmp_path / "undisturbed")
    allowances, late = Allowances(force_running=True, accept_drift=frozenset({"target"})), b'{"n":1000}'
    for step in range(steps):
        scene = KillableScene(tmp_path / f"killed-{step}")
        scene.killed_after(step)
        is_over = read_earlier_runs(migration_journal(scene.plan_folder(), Clock())).ended
        scene.put("offsets-a", {OLD: late})
        result = scene.run(resume=True, allowances=allowances)
        if is_over:
            assert result.exit_code is ExitCode.PARTIAL, "a plan that is over is never written again"
            continue
        assert (result.exit_code, scene.target()) == (ExitCode.OK, EXPECTED), f"killed after step {step}"
        kept = [line for line in scene.backup() if '"value":"{\\"n\\":1000}"' in line]
        assert len(kept) == 1, "what it was allowed to write over can be put back"


def test_a_target_that_differs_in_the_end_leaves_the_plan_unfinished(scene: KillableScene) -> None:
    """Someone else writes before the target is read back: called finished, the plan would never be looked at again."""
    someone_writes_once(scene)
    result = scene.run()
    assert (result.exit_code, result.summary.differing) == (ExitCode.PARTIAL, 1)
    with pytest.raises(RefusedError, match="begun and cut off"):
        scene.run()
    with pytest.raises(StalePlanError, match="the target has new offsets of a"):
        scene.run(resume=True)
    mended = scene.run(resume=True, allowances=Allowances(force_running=True, accept_drift=frozenset({"target"})))
    assert (mended.exit_code, mended.summary.sent, mended.summary.differing) == (ExitCode.OK, 1, 0)
    assert scene.target() == EXPECTED
    with pytest.raises(RefusedError, match="was applied before"):
        scene.run()


def test_a_half_finished_migration_is_taken_back(scene: KillableScene) -> None:
    scene.killed_after(_step_of_the_first_record(scene) + 6)
    for transactional_id in scene.open_ids():
        scene.brokers.state.expire(transactional_id)
    backup = scene.backup_file()
    restore = plan_restore(scene.app(), RestoreRequest(str(backup)))
    written = {key for key, (_partition, value) in scene.target().items() if key in KEYS and KEYS[key] == value}
    assert 0 < len(written) < len(KEYS)
    assert {write.key.raw for write in restore.writes if write.sends()} == written
    assert {write.reason for write in restore.writes} == {"equal", "absent_before", "restored"} - (
        set() if OLD in written else {"restored"}
    )


def test_before_the_topics_are_made_there_is_nothing_to_take_back(tmp_path: Path) -> None:
    """It used to be refused, as the topic of the backup is not there."""
    steps, _backup = undisturbed(tmp_path / "undisturbed")
    seen = 0
    for step in range(steps):
        scene = KillableScene(tmp_path / f"killed-{step}")
        scene.killed_after(step)
        backup = scene.backup_file()
        if backup.exists() and "offsets-b" not in scene.topics.topics:
            seen += 1
            assert not any(write.sends() for write in plan_restore(scene.app(), RestoreRequest(str(backup))).writes)
    assert seen


def test_the_journal_is_lines_that_people_can_read(scene: KillableScene) -> None:
    scene.run()
    path = scene.plan_folder() / "journal.ndjson"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    events = [(line["event"], line.get("stage")) for line in lines]
    stages = [(event, stage) for stage in ("backup", "create", "write", "verify") for event in ("started", "done")]
    assert events == [("hold", None), ("begin", None), *stages, ("end", None)]
