"""What becomes of a plan of offset writes when something fails, dies or comes between; on topics in memory."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.offsets.views import Prefer
from eosctl.deadline import Deadline
from eosctl.engine import write as transactions
from eosctl.errors import (
    BrokerError,
    DeadlineError,
    EosctlError,
    RefusedError,
    StalePlanError,
    UnauthorizedError,
    UnreachableError,
)
from eosctl.offsets.apply import apply_plan, send_to_topics
from eosctl.offsets.edit.edit import ResetRequest, SetRequest, plan_offsets_reset, plan_offsets_set
from eosctl.offsets.files.importing import ImportRequest, plan_offsets_import
from eosctl.offsets.files.offsets_file import parse_offsets_file
from eosctl.offsets.files.restore import RestoreRequest, plan_restore
from eosctl.offsets.writes import MergeRequest, OffsetWritePlan, offsets_journal, plan_offsets_merge, show_plan
from eosctl.ports import TopicClient
from eosctl.report import Report
from tests.core.offsets.stores import NO_SPOOL
from tests.fakes.faults import KilledError, worth_a_kill
from tests.fakes.offset_topics import GLOBAL, IN_OWN, OWN, A, B, OffsetWorld, merge_world
from tests.fakes.partitions import FakePartition
from tests.fakes.switching import SwitchWorld
from tests.reports import codes

ID = "eosctl-offsets-g-writer"
C = b'["c",{"f":"c"}]'
INTO_OWN = MergeRequest(("c",), into="dedicated", prefer=Prefer.NEWEST)


@pytest.fixture
def world() -> OffsetWorld:
    """A merge into `own` has two offsets to write there, and one to delete."""
    world = merge_world()
    world.topics.put(GLOBAL, C, b"3")
    return world


def merge(app: App) -> Report:
    return apply_plan(app, plan_offsets_merge(app, INTO_OWN), lambda: plan_offsets_merge(app, INTO_OWN))


def test_all_of_it_is_one_transaction_under_an_id_of_our_own_deletions_first(app: App, world: OffsetWorld) -> None:
    assert merge(app).exit_code == 0
    [(transactional_id, records)] = world.topics.written
    assert (transactional_id, [(record.key, record.value) for record in records]) == (
        ID,
        [(B, None), (A, b"1"), (C, b"3")],
    )


def test_without_a_group_the_id_is_our_own_too(app: App, world: OffsetWorld) -> None:
    app = replace(app, target=replace(app.target, group_id=None))
    assert merge(app).exit_code == 0
    assert world.topics.written[0][0] == "eosctl-offsets-writer"


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (EosctlError("the broker went away"), 1),
        (BrokerError("writing records failed: another producer took over transactional id"), 1),
        (UnauthorizedError("not authorized: taking transactional id", hint="kafka-acls.sh --add"), 5),
    ],
)
def test_a_transaction_that_failed_wrote_nothing(
    app: App, world: OffsetWorld, error: EosctlError, exit_code: int
) -> None:
    """Without a transaction the records before the failure stayed, and a task may have started from half of them."""
    before = world.topics.newest(OWN)
    world.topics.fail_next("record", error, done=True)
    report = merge(app)
    assert world.time.slept == [], "what has failed does not come later"
    assert (int(report.exit_code), world.topics.newest(OWN)) == (exit_code, before)
    assert {row.outcome for row in report.rows} == {"failed"}
    assert (report.problems[0].message, report.problems[0].hint) == (error.message, error.hint)


def test_what_came_as_it_was_sent_is_read_once_and_no_key_is_looked_for(app: App, world: OffsetWorld) -> None:
    plan = plan_offsets_merge(app, INTO_OWN)
    world.topics.fail_always("read", EosctlError("nobody asks for the newest of each key"))
    report = apply_plan(app, plan, lambda: plan)
    assert (int(report.exit_code), [row.outcome for row in report.rows]) == (0, ["written"] * 3)


@pytest.mark.parametrize(
    ("foreign", "outcomes"),
    [
        ((b'["d",{"f":"d"}]', b"9"), {"written"}),
        ((A, b"9"), {"written", "differs"}),
    ],
    ids=["another-key", "the-same-key"],
)
def test_where_somebody_else_has_written_since_each_key_is_looked_for(
    app: App, world: OffsetWorld, foreign: tuple[bytes, bytes], outcomes: set[str]
) -> None:
    plan = plan_offsets_merge(app, INTO_OWN)

    def send(app: App, plan: OffsetWritePlan) -> None:
        send_to_topics(app, plan)
        world.topics.put(OWN, *foreign)

    report = apply_plan(app, plan, lambda: plan, send=send)
    assert {row.outcome for row in report.rows} == outcomes


def test_a_topic_that_has_fewer_partitions_now_lacks_what_was_sent(app: App, world: OffsetWorld) -> None:
    """It was deleted and created again: the places of what was sent are not all there."""
    plan = plan_offsets_merge(app, INTO_OWN)

    def send(app: App, plan: OffsetWritePlan) -> None:
        send_to_topics(app, plan)
        log = world.topics.named(OWN)
        log.partitions[:] = [FakePartition()]

    report = apply_plan(app, plan, lambda: plan, send=send)
    assert "written" not in {row.outcome for row in report.rows}


def test_of_two_failures_the_first_is_told(app: App, world: OffsetWorld) -> None:
    """What reading back came to says nothing of why the write failed."""
    world.topics.fail_next("record", EosctlError("the broker went away"))
    plan = plan_offsets_merge(app, INTO_OWN)
    world.topics.fail_next("read", UnreachableError("no answer"))
    report = apply_plan(app, plan, lambda: plan)
    assert (int(report.exit_code), {row.outcome for row in report.rows}) == (7, {"unconfirmed"})
    assert report.problems[0].message == "the broker went away"


def test_a_broker_that_is_away_when_the_offsets_are_read_back_is_waited_for(app: App, world: OffsetWorld) -> None:
    """All was written, and yet the exit code was 7, at the first answer that did not come."""
    plan = plan_offsets_merge(app, INTO_OWN)
    for _ in range(3):
        world.topics.fail_next("pieces", UnreachableError("no answer"))
    report = apply_plan(app, plan, lambda: plan)
    assert (int(report.exit_code), {row.outcome for row in report.rows}) == (0, {"written"})
    assert len(world.time.slept) == 3


def test_a_broker_that_stays_away_is_waited_for_until_the_timeout(app: App, world: OffsetWorld) -> None:
    plan = plan_offsets_merge(app, INTO_OWN)
    world.topics.fail_always("pieces", UnreachableError("no answer"))
    report = apply_plan(app, plan, lambda: plan)
    assert (int(report.exit_code), {row.outcome for row in report.rows}) == (7, {"unconfirmed"})
    assert sum(world.time.slept) == pytest.approx(app.deadline.timeout_s)


def test_each_part_of_a_write_has_the_whole_timeout(app: App, world: OffsetWorld) -> None:
    """The time in which a person read the plan used to count, at first for all of it, then for its checks."""
    left_s: list[float] = []

    def topics(app: App) -> TopicClient:
        left_s.append(app.deadline.remaining_s())
        return world.topics

    app = replace(app, open_topics=topics)
    plan = plan_offsets_merge(app, INTO_OWN)
    world.time.now_s += 3600
    left_s.clear()
    assert apply_plan(app, plan, lambda: plan).exit_code == 0
    assert set(left_s) == {app.deadline.timeout_s}


def test_where_a_topic_may_not_be_made_nothing_is_written(app: App, world: OffsetWorld) -> None:
    world.connect.add("c", {"offsets.storage.topic": "new"}, state="STOPPED")
    error = UnauthorizedError("not authorized: creating topic new failed", hint="kafka-acls.sh --add")
    world.topics.fail_next("create", error)
    report = merge(app)
    assert int(report.exit_code) == 5
    assert {row.outcome for row in report.rows} == {"failed", "unchanged"}
    assert (report.problems[0].message, world.topics.written) == (error.message, [])


def test_what_was_aborted_is_seen_by_workers_that_are_not_enabled_and_that_is_said(
    app: App, world: OffsetWorld
) -> None:
    """They read what is not committed: for them the half that was sent counts, until something newer is committed."""
    world.topics.fail_next("record", EosctlError("the broker went away"), done=True)
    assert codes(merge(app)) == ["failed", "aborted_but_visible"]
    done = merge(app)
    assert (int(done.exit_code), codes(done)) == (0, [])
    views = [{r.key: r.value for r in world.topics.read(OWN, isolation=each).records}
             for each in ("read_committed", "read_uncommitted")]  # fmt: skip
    assert views[0] == views[1]


@pytest.mark.parametrize("error", [DeadlineError("no time"), UnreachableError("no answer")])
def test_an_answer_that_got_lost_is_no_failure_when_all_is_there(
    app: App, world: OffsetWorld, error: EosctlError
) -> None:
    """It used to be partial, with every row written."""
    world.topics.fail_next("write", error, done=True)
    report = merge(app)
    assert (int(report.exit_code), codes(report)) == (0, ["answer_lost"])
    assert {row.outcome for row in report.rows} == {"written"}


def test_what_is_not_there_after_an_answer_got_lost_is_unconfirmed(app: App, world: OffsetWorld) -> None:
    """The transaction may be committed later: nobody can say that it failed."""
    world.topics.fail_next("record", UnreachableError("no answer"), done=True)
    report = merge(app)
    assert (int(report.exit_code), {row.outcome for row in report.rows}) == (7, {"unconfirmed"})


def test_partitions_that_were_added_since_the_plan_are_drift(app: App, world: OffsetWorld) -> None:
    """The offset went to the home of the plan's time, where Connect's producer puts none any more."""
    plan = plan_offsets_merge(app, INTO_OWN)
    world.topics.topics[OWN].partitions.append(FakePartition())
    with pytest.raises(StalePlanError, match="topic own has 6 partitions, the plan says 5"):
        apply_plan(app, plan, lambda: plan)


def test_a_connector_that_is_started_before_the_write_stops_it(app: App, world: OffsetWorld) -> None:
    """It was asked about once, before the stores were read again."""
    plan = plan_offsets_merge(app, INTO_OWN)
    world.topics.put(OWN, b'["other",{}]', b"1")

    def again() -> OffsetWritePlan:
        world.connect.add("c", IN_OWN)
        return plan_offsets_merge(app, INTO_OWN)

    with pytest.raises(RefusedError, match=r"not stopped: c \(RUNNING, 1 task\); nothing was written"):
        apply_plan(app, plan, again)
    assert world.topics.writes == 0


@pytest.mark.parametrize("after_us", [b'{"n":0}', None], ids=["somebody", "nobody"])
def test_what_somebody_wrote_behind_an_open_transaction_is_unconfirmed(
    app: App, world: OffsetWorld, after_us: bytes | None
) -> None:
    """What is committed behind it and the last of its key is there, though no committed reader sees it yet."""
    plan = plan_offsets_merge(app, INTO_OWN)
    partition = next(write.partition for write in plan.writes if write.key.raw == A)

    def send(_app: App, plan: OffsetWritePlan) -> None:
        world.topics.open_transaction(OWN, partition)
        for write in plan.sends():
            world.topics.put(write.topic, write.key.raw, write.after, partition=write.partition)
        if after_us:
            world.topics.put(OWN, A, after_us)

    quick = replace(app, deadline=Deadline.after(1, app.clock))
    report = apply_plan(quick, plan, lambda: plan, send=send)
    outcome = {row.key: row.outcome for row in report.rows}[A.decode()]
    assert (int(report.exit_code), outcome) == ((7, "unconfirmed") if after_us else (0, "written"))


def test_very_many_offsets_go_in_several_transactions_and_that_is_said(
    app: App, world: OffsetWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "MOST_RECORDS", 2)
    plan = plan_offsets_merge(app, INTO_OWN)
    assert "split" in codes(show_plan(app, plan))
    world.topics.fail_next("record", EosctlError("the broker went away"), skip=2, done=True)
    report = apply_plan(app, plan, lambda: plan)
    assert int(report.exit_code) == 7, "the first transaction is there"
    assert [row.outcome for row in report.rows] == ["written", "written", "failed"]
    (aborted,) = [problem.message for problem in report.problems if problem.code == "aborted_but_visible"]
    assert aborted.startswith("1 of them "), "what was committed before is not aborted"
    assert [len(records) for _id, records in world.topics.written] == [2]
    assert merge(app).exit_code == 0
    assert world.topics.newest(OWN) == {A: b"1", B: None, C: b"3"}


def test_two_at_once_are_kept_apart(app: App, world: OffsetWorld) -> None:
    with (
        offsets_journal(app, "memory-cluster").hold("the offsets"),
        pytest.raises(RefusedError, match="another eosctl is at work on the offsets of cluster memory-cluster"),
    ):
        merge(app)
    assert world.topics.writes == 0
    assert merge(app).exit_code == 0


def test_one_on_another_machine_is_noticed_by_what_it_wrote(app: App, world: OffsetWorld) -> None:
    mine = plan_offsets_merge(app, INTO_OWN)
    assert merge(replace(app, state_dir=app.state_dir / "other machine")).exit_code == 0
    with pytest.raises(RefusedError, match="changed since the plan was made"):
        apply_plan(app, mine, lambda: plan_offsets_merge(app, INTO_OWN))
    assert len(world.topics.written) == 1


Plan = Callable[[App], OffsetWritePlan]
PARTITION = '{"filename":"f"}'


def _merge_plan(app: App) -> OffsetWritePlan:
    return plan_offsets_merge(app, MergeRequest(("c",), into="dedicated", prefer=Prefer.GLOBAL))


def _set_plan(app: App) -> OffsetWritePlan:
    return plan_offsets_set(app, SetRequest("c", ((PARTITION, '{"position":9}'),), via="topic")).writes


def _reset_plan(app: App) -> OffsetWritePlan:
    return plan_offsets_reset(app, ResetRequest("c", (PARTITION,), via="topic")).writes


def _import_plan(app: App) -> OffsetWritePlan:
    lines = [{"topic": OWN, "partition": 0, "key": f'["c",{{"filename":"{n}"}}]', "value": "{}"} for n in "fgh"]
    content = "\n".join(json.dumps(line) for line in lines).encode()
    file = parse_offsets_file(io.BytesIO(content), NO_SPOOL, name="f")
    return plan_offsets_import(app, ImportRequest(file, store=OWN))


def _restore_plan(app: App) -> OffsetWritePlan:
    path = app.state_dir.parent / "backup.ndjson"
    lines = [{"topic": OWN, "partition": 0, "key": f'["c",{{"filename":"{n}"}}]', "value": "{}"} for n in "fgh"]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return plan_restore(app, RestoreRequest(str(path)))


def _stopped_world() -> SwitchWorld:
    world = SwitchWorld()
    world.place("RUNNING", offsets_storage_topic=OWN)
    world.run_task()
    world.topics.put(GLOBAL, b'["c",{"filename":"g"}]', b'{"position":1}')
    world.topics.put(GLOBAL, b'["c",{"filename":"f"}]', b'{"position":2}')
    world.place("STOPPED")
    return world


def _stores(world: SwitchWorld) -> dict[str, dict[bytes | None, bytes | None]]:
    return {topic: world.topics.newest(topic) for topic in (GLOBAL, OWN)}


@pytest.mark.parametrize("plan_of", [_merge_plan, _set_plan, _reset_plan, _import_plan, _restore_plan])
def test_killed_anywhere_all_of_it_is_there_or_nothing_and_the_next_run_says_so(tmp_path: Path, plan_of: Plan) -> None:
    undisturbed = _stopped_world()
    app = undisturbed.app(tmp_path / "undisturbed" / "state")
    app.state_dir.mkdir(parents=True)
    plan = plan_of(app)
    assert plan.sends()
    before = _stores(undisturbed)
    ended: list[Report] = []
    run = lambda: ended.append(apply_plan(app, plan, lambda: plan_of(app)))  # noqa: E731
    kills = worth_a_kill(undisturbed.kill, run, partial(undisturbed.left, app.state_dir))
    assert ended[0].exit_code == 0
    wanted, begun, blocked = _stores(undisturbed), 0, 0
    for kill_at in kills:
        world = _stopped_world()
        app = world.app(tmp_path / str(kill_at) / "state")
        app.state_dir.mkdir(parents=True)
        plan = plan_of(app)
        world.kill.ticks, world.kill.at = 0, kill_at
        with pytest.raises(KilledError):
            apply_plan(app, plan, lambda app=app: plan_of(app))  # type: ignore[misc]
        world.kill.at = None
        assert _stores(world) in (before, wanted), f"killed at call {kill_at}"
        try:
            again = plan_of(app)
        except RefusedError as refused:
            blocked += f"a killed eosctl left it: `eosctl fence {ID}` ends it at once" in str(refused.hint)
            world.topics.state.expire(ID)
            again = plan_of(app)
        shown = show_plan(app, again)
        has_begun = bool(list((app.state_dir / "backups").glob("*"))) if (app.state_dir / "backups").exists() else False
        assert ("write_cut_off" in codes(shown)) == has_begun, f"killed at call {kill_at}"
        begun += has_begun
        if again.sends():
            done = apply_plan(app, again, lambda app=app: plan_of(app))  # type: ignore[misc]
            assert done.exit_code == 0, f"killed at call {kill_at}"
            assert codes(show_plan(app, plan_of(app))).count("write_cut_off") == 0
        assert _stores(world) == wanted, f"killed at call {kill_at}"
    assert begun > 4, "before, in the middle of, and after the transaction, and while reading back"
    assert blocked > 0, "the transaction that was left open is still there"
