"""What `offsets migrate` refuses, and when: no Spark, no Kafka, the stages and the topics are fakes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from errno import ENOSPC
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec.structs import replace
from msgspec.structs import replace as replaced

from eosctl.core.allowances import Allowances
from eosctl.core.configs.records import Selection
from eosctl.core.offsets.migration import PART_BYTES, Comparison, ConnectorRoute, PlannedTopic, Snapshot, Tally
from eosctl.core.offsets.names import partition_for
from eosctl.core.offsets.views import Policy
from eosctl.engine.backups.file import open_backup
from eosctl.errors import EosctlError, ExitCode, NotFoundError, RefusedError, StalePlanError
from eosctl.migrate.plan import snapshot_folder
from eosctl.migrate.run import verify_plan
from eosctl.output.text import write_text
from tests.fakes.killed_migration import backup_rows
from tests.fakes.migration import KEY, SOURCE, Scene, connector, key_of, plan_of
from tests.synced_files import SyncedFiles


def test_plan_then_apply(scene: Scene) -> None:
    prepared = scene.prepared()
    assert prepared.report().kind == "offsets-migrate-plan"
    assert prepared.apply is not None
    result = prepared.apply()
    assert result.exit_code is ExitCode.OK
    assert scene.created() == ["offsets-a"]
    assert scene.topics.newest("offsets-a") == {KEY: b"{}"}
    assert scene.calls == [
        "snapshot source connect-offsets in 2 parts", "snapshot target offsets-a in 2 parts", "backup",
        "write decisions in 2", "compare target since the plan",
    ]  # fmt: skip
    backup = Path(str(result.data.backup))
    place = {"topic": "offsets-a", "partition": partition_for(KEY, 2), "key": KEY}
    nothing = dict.fromkeys(("offset", "timestamp_ms", "value", "headers"))
    assert (open_backup(backup).cluster_id, backup_rows(backup)) == (
        "cluster",
        [{**place, **nothing, "written": b"{}"}],
    )
    assert result.data.undo == f"eosctl offsets restore {backup}"
    assert not list((scene.folder / "migrations").glob(".planning-*"))


def test_snapshots_that_can_not_be_kept_are_refused_with_words(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both were unexpected errors of the system's."""
    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(ENOSPC, "No space left on device")))
    with pytest.raises(EosctlError, match=r"plan\.json: No space left"):
        scene.prepared()
    monkeypatch.undo()
    shutil.rmtree(scene.folder / "migrations")
    (scene.folder / "migrations").touch()
    with pytest.raises(EosctlError, match=r"cannot make a folder in .*migrations"):
        scene.prepared()


def test_backup_and_journal_are_on_the_disk_before_the_write(scene: Scene, synced: SyncedFiles) -> None:
    synced.moment = lambda: "write decisions in 2" in scene.calls
    prepared = scene.prepared()
    assert prepared.apply is not None
    backup = Path(str(prepared.apply().data.backup))
    plan = backup.parent / "plan.json"
    assert synced.kept(plan).get(plan.read_bytes()) is False, "--resume found an empty plan after a power cut"
    journal = backup.parent / "journal.ndjson"
    assert synced.kept(backup)[backup.read_bytes()] is False
    kept = synced.kept(journal)
    (begun,) = [content for content, written in kept.items() if b'"write"' in content and not written]
    assert b'"backup"' in begun
    assert journal.read_bytes() in kept


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_key_in_two_places_is_told_where_workers_may_read_either(scene: Scene, side: str) -> None:
    """It sent all keys through a shuffle."""
    if side == "target":
        scene.add_topic("offsets-a")
    other = key_of("b")
    scene.put_elsewhere(SOURCE if side == "source" else "offsets-a", other)
    prepared = scene.prepared(selection=Selection(connectors=("a",)))
    assert prepared.report().data.parts == 2
    told = [event.message for event in scene.events if "lie on partitions other than their own" in event.message]
    assert len(told) == (side == "target"), "a worker may read any copy of the target last"
    assert prepared.apply is not None
    assert prepared.apply().exit_code is ExitCode.OK
    assert scene.calls[1:] == [
        "snapshot target offsets-a in 2 parts", "backup", "write decisions in 2", "compare target since the plan",
    ]  # fmt: skip


@pytest.mark.parametrize(("parts", "words"), [(1, "in one place: 1 part, no"), (2, "in one place: 2 parts, no")])
def test_a_plan_says_in_how_many_parts(scene: Scene, parts: int, words: str) -> None:
    """A plan of few records said `1 parts`."""
    report = scene.prepared(renames={"a": "b"}).report()
    assert report.data.parts == 2
    shown = StringIO()
    write_text(replace(report, data=replaced(report.data, parts=parts)), shown, color=False, wide=False)
    assert words in shown.getvalue()


@pytest.mark.parametrize("heavy", ["source", "target"])
def test_parts_are_bounded_by_bytes_too(scene: Scene, heavy: str) -> None:
    """Large values made parts of more than the 2 GiB at which an array of Arrow ends, and nothing could be migrated."""
    scene.put_all(f"c{number}" for number in range(30))
    scene.add_topic("offsets-a", 2, *(key_of(f"c{number}") for number in range(20)))
    snapshot, found = scene.stages.snapshot, list[int]()

    def read(topics: Sequence[PlannedTopic], folder: Path, **more: Any) -> Snapshot:
        read = snapshot(topics, folder, **more)
        scale = PART_BYTES // 100 if folder.name == heavy else 1
        found.append(max((size * scale for size in read.part_bytes.values()), default=0))
        return replace(read, part_bytes={part: size * scale for part, size in read.part_bytes.items()})

    scene.stages.snapshot = read  # type: ignore[method-assign]
    plan = scene.plan(policy=Policy.TAKE_SOURCE, target="offsets-a")
    parts = len(plan.parts)
    assert [call.rpartition(" in ")[2] for call in scene.calls] == ["2 parts"] * 2 + [f"{parts} parts"] * 2
    assert (parts > 2, max(found[:2]) > PART_BYTES, max(found[2:]) < 2 * PART_BYTES) == (True, True, True)
    assert any("read again in smaller parts" in event.message for event in scene.events)
    assert scene.apply(plan).exit_code is ExitCode.OK


def test_nothing_to_do_is_nothing_to_apply(scene: Scene) -> None:
    scene.add_topic("offsets-a", 2, KEY)
    prepared = scene.prepared()
    assert prepared.apply is None
    assert prepared.report().exit_code is ExitCode.OK


def test_undecided_conflicts_are_refused(scene: Scene) -> None:
    scene.add_topic("offsets-a")
    scene.put("offsets-a", {KEY: b'{"n":1}'})
    prepared = scene.prepared(policy=Policy.FAIL)
    assert prepared.apply is None
    assert prepared.report().exit_code is ExitCode.REFUSED
    assert "--conflict" in str(prepared.report().problems[0].hint)


@pytest.mark.parametrize("where", ["read", "folded", "decided"])
def test_counts_that_do_not_add_up_stop_everything(scene: Scene, where: str) -> None:
    """No records lead to it: it is a defect of the stages. What was read was counted where it was folded, too."""
    snapshot, decide = scene.stages.snapshot, scene.stages.decide

    def read(*given: Any, **more: Any) -> Snapshot:
        found = snapshot(*given, **more)
        return replace(found, records=found.records + 1)

    def decided(*given: Any) -> Tally:
        tally = decide(*given)
        return replace(tally, older=1) if where == "folded" else replace(tally, counts={**tally.counts, "write": 0})

    if where == "read":
        scene.stages.snapshot = read  # type: ignore[method-assign]
    else:
        scene.stages.decide = decided  # type: ignore[assignment,method-assign]
    with pytest.raises(EosctlError, match="do not add up"):
        scene.prepared()
    assert list((scene.folder / "migrations").iterdir()) == []


def test_keys_that_are_not_read_back_are_an_error(scene: Scene) -> None:
    """A comparison of fewer keys than were decided was called verified."""
    plan, compare = scene.plan(), scene.stages.compare

    def compared(*given: Any, **more: Any) -> Comparison:
        return replace(compare(*given, **more), compared=0)

    scene.stages.compare = compared  # type: ignore[method-assign]
    report = scene.apply(plan)
    assert (report.exit_code, report.rows[-1].outcome) == (ExitCode.FAILED, "failed")
    assert "1 keys were decided, 0 were read back" in report.problems[0].message


def test_an_unconfirmed_record_is_an_error(scene: Scene) -> None:
    plan = scene.plan()
    scene.stages.before("write", lambda _call: scene.lose_decisions(plan))
    report = scene.apply(plan)
    assert (report.exit_code, report.summary.sent) == (ExitCode.FAILED, None)
    assert "1 record was to be sent, and 0 confirmed" in report.problems[0].message


@pytest.mark.parametrize(
    ("left", "exit_code"), [(b'{"n":1}', ExitCode.PARTIAL), (None, ExitCode.OK)], ids=["lost", "compacted away"]
)
def test_a_delete_that_is_not_there_is_looked_for(scene: Scene, left: bytes | None, exit_code: ExitCode) -> None:
    """Nothing had come of its key since the plan: a tombstone that was never written was called verified."""
    scene.add_topic("offsets-a")
    scene.put("offsets-a", {KEY: b'{"n":1}'})
    scene.put(SOURCE, {KEY: None})
    plan = scene.plan(policy=Policy.TAKE_SOURCE)
    assert plan.tally.counts["delete"] == 1

    def take_away(_call: object) -> None:
        for log in scene.topics.topics["offsets-a"].partitions:
            log.records = [record for record in log.records if left is not None and record.value == left]

    scene.stages.after("write", take_away)
    assert scene.apply(plan).exit_code is exit_code
    assert scene.calls[-2:] == ["compare target since the plan", "compare target"]


def test_missing_source(scene: Scene) -> None:
    with pytest.raises(NotFoundError, match="topic nowhere does not exist"):
        scene.prepared(sources=("nowhere",))


@pytest.mark.parametrize("allowed", [False, True])
def test_open_transaction(scene: Scene, allowed: bool) -> None:
    scene.topics.open_transaction(SOURCE, 1)
    if allowed:
        assert scene.prepared(allow_open_transactions=True).apply is not None
        return
    with pytest.raises(RefusedError, match="connect-offsets-1"):
        scene.prepared()
    assert scene.slept_s > 0, "a transaction of a running task ends in a moment: wait for it"


@pytest.mark.parametrize(
    ("connectors", "allowances", "message"),
    [
        (None, Allowances(), "not known"),
        ({"a": connector("RUNNING", 1)}, Allowances(), r"a \(RUNNING, 1 task\)"),
        ({"a": connector("STOPPED", 1)}, Allowances(), r"a \(STOPPED, 1 task\)"),
        ({"a": connector("PAUSED")}, Allowances(), r"a \(PAUSED, 0 tasks\)"),
        ({"a": connector("STOPPED")}, Allowances(), None),
        ({"b": connector("RUNNING", 1)}, Allowances(), None),
        ({"a": connector("RUNNING", 1)}, Allowances(force_running=True), None),
    ],
)
def test_running_connectors(scene: Scene, connectors: Any, allowances: Allowances, message: str | None) -> None:
    scene.place(connectors)
    plan = scene.plan()
    if message is None:
        assert scene.apply(plan, allowances).exit_code is ExitCode.OK
        return
    with pytest.raises(RefusedError, match=message):
        scene.apply(plan, allowances)
    assert "write decisions in 2" not in scene.calls


def test_a_renamed_connector_may_not_run_under_its_new_name_either(scene: Scene) -> None:
    scene.place({"a": connector("STOPPED"), "z": connector("RUNNING", 1)})
    prepared = scene.prepared(Allowances(), renames={"a": "z"})
    assert [(p.severity, p.code) for p in prepared.report().problems] == [("warning", "running")]
    assert prepared.apply is not None
    with pytest.raises(RefusedError, match="z "):
        prepared.apply()


def test_target_drift_of_a_renamed_connector_is_that_of_its_new_name(scene: Scene) -> None:
    scene.add_topic("offsets-z")
    apply = scene.prepared(renames={"a": "z"}).apply
    assert apply is not None
    scene.put("offsets-z", {key_of("z"): b'{"n":1}'})
    with pytest.raises(StalePlanError, match="the target has new offsets of z"):
        apply()


@pytest.mark.parametrize(
    ("topic", "there", "message"),
    [(SOURCE, True, "was recreated"), (SOURCE, False, "is gone"), ("offsets-a", True, "was created")],
)
def test_other_topics_than_planned(scene: Scene, topic: str, there: bool, message: str) -> None:
    plan = scene.plan()
    scene.topics.topics.pop(topic, None)
    if there:
        scene.add_topic(topic)
    with pytest.raises(StalePlanError, match=message):
        scene.apply(plan)


def test_a_plan_without_its_snapshot(scene: Scene) -> None:
    plan = replace(scene.plan(), snapshot_base=str(scene.folder / "elsewhere"))
    with pytest.raises(NotFoundError, match="snapshot"):
        scene.apply(plan)


@pytest.mark.parametrize(("differing", "exit_code"), [(0, ExitCode.OK), (1, ExitCode.FINDINGS)])
def test_verify(scene: Scene, differing: int, exit_code: ExitCode) -> None:
    plan = scene.plan()
    scene.add_topic("offsets-a", 2, *([] if differing else [KEY]))
    report = verify_plan(scene.app(), plan, scene.engine())
    assert (report.kind, report.exit_code) == ("offsets-verify", exit_code)
    assert [row.side for row in report.rows] == ["target"] * differing
    assert scene.calls[-2:] == ["compare source", "compare target"]


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_verification_does_not_claim_what_an_open_transaction_hides(scene: Scene, side: str) -> None:
    """A key whose newer record lies behind an open transaction was counted as verified."""
    plan, topic = scene.plan(), SOURCE if side == "source" else "offsets-a"
    scene.apply(plan)
    scene.topics.open_transaction(topic, partition_for(KEY, 2), key=b"nobody's")
    assert verify_plan(scene.app(), plan, scene.engine()).exit_code is ExitCode.OK
    scene.put(topic, {KEY: b"1", key_of("other"): b"1"})
    report = verify_plan(scene.app(), plan, scene.engine())
    assert (report.exit_code, [(row.side, row.status) for row in report.rows]) == (7, [(side, "hidden")])
    assert [problem.code for problem in report.problems] == ["open_transaction"]
    assert verify_plan(scene.app(), plan, scene.engine(), strict=True).exit_code is ExitCode.FINDINGS


def test_a_source_without_offsets(tmp_path: Path) -> None:
    """`--all` of an empty topic was an IndexError."""
    scene = Scene(tmp_path)
    with pytest.raises(NotFoundError, match="the source has no offsets of any connector"):
        scene.prepared()
    assert list((scene.folder / "migrations").iterdir()) == []


def test_a_key_of_half_a_surrogate_pair_is_nobodys(scene: Scene) -> None:
    """One such key, which no connector can have, stopped the migration of all others."""
    scene.put(SOURCE, {rb'["\ud800",{}]': b"{}"})
    plan = scene.plan()
    assert (plan.tally.unowned, plan.tally.keys, plan.routes) == (1, 1, (ConnectorRoute("a", "a", "offsets-a"),))
    assert scene.apply(plan).exit_code is ExitCode.OK


def test_what_earlier_plans_left_is_named_and_pruned(scene: Scene) -> None:
    """Each plan kept all that it had read for ever, and nothing said so."""
    applied, waiting = scene.plan(), scene.plan(policy=Policy.NEWEST)
    scene.apply(applied)
    backup = snapshot_folder(applied) / "backup.parquet"
    scene.put_all(["b"])
    stale = scene.plan(policy=Policy.TAKE_SOURCE, selection=Selection(("b",)))
    os.utime(snapshot_folder(stale) / "plan.json", (0, 0))
    prepared = scene.prepared(prune=True)
    (left,) = [problem for problem in prepared.report().problems if problem.code == "old_snapshots"]
    assert left.message.startswith("2 older snapshots take ")
    assert prepared.apply is not None
    assert (prepared.apply().exit_code, backup.exists()) == (ExitCode.OK, True)
    assert sorted(path.name for path in snapshot_folder(applied).iterdir()) == [
        "backup.parquet", "journal.ndjson", "plan.json",
    ]  # fmt: skip
    assert [path.name for path in snapshot_folder(stale).iterdir()] == ["plan.json"]
    assert (snapshot_folder(waiting) / "decisions").exists(), "it may wait for its time"
    assert (snapshot_folder(plan_of(prepared.report())) / "decisions").exists(), "to verify"
    (left,) = [problem for problem in scene.prepared().report().problems if problem.code == "old_snapshots"]
    assert left.message.startswith("1 older snapshot takes "), "that of the plan that was applied just now"


def test_a_topic_that_is_missing_on_another_cluster_than_planned(scene: Scene) -> None:
    """Its absence used to look the same everywhere: it would have been created on the wrong cluster."""
    plan = scene.plan()
    plan = replace(plan, sources=(replace(plan.sources[0], cluster_id="elsewhere"),))
    scene.brokers.state.cluster_id = "elsewhere"
    (scene.folder / "migrations" / plan.name() / "decisions").mkdir(parents=True)
    (scene.folder / "migrations" / plan.name() / "decisions" / "_SUCCESS").touch()
    with pytest.raises(StalePlanError, match="the plan is for cluster cluster, this is elsewhere"):
        scene.apply(plan)
    assert scene.created() == []


def test_what_a_killed_planning_left_is_cleared_away(scene: Scene) -> None:
    left = scene.folder / "migrations" / ".planning-dead"
    left.mkdir(parents=True)
    scene.plan()
    assert not left.exists()
