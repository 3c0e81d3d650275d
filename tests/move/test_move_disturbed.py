"""Moves that others disturb: people, tools, a machine that sleeps, a profile that changes."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.checks.plan import examine
from eosctl.core.configs.records import Selection
from eosctl.core.ids import offsets_transactional_id
from eosctl.core.java.json import encode_key, encode_offset
from eosctl.core.records import OutRecord
from eosctl.create.journal import journal_of_create
from eosctl.errors import ConnectError, EosctlError, ExitCode, RefusedError, UnreachableError
from eosctl.move.apply import prepare_move
from eosctl.move.journal import Direction
from eosctl.move.plan import MoveRequest
from eosctl.move.rows import CONNECTORS_MOVE_PLAN
from eosctl.move.sides import look_at_side, prepare_resume, require_at_rest
from tests.fakes.connect_worker import FakeConnectWorker
from tests.fakes.faults import Call, once
from tests.fakes.moving import NAME, OUT, OWN, PARTITION, PROFILE, MovingWorld, move, outcomes, while_stopped
from tests.move.test_move_kinds import add, several

BACK, DELETE = Direction.BACK, Direction.DELETE


def run_here_for_a_while(world: MovingWorld) -> None:
    """Somebody starts it here, it reads on, and it is stopped again."""
    time = world.here.world.time
    world.here.connect.set_target(NAME, "STARTED")
    world.lines.append("meanwhile")
    time.pass_until(time.now_s + 5)
    world.here.connect.set_target(NAME, "STOPPED")
    time.pass_until(time.now_s + 5)


def test_what_ran_here_between_the_copy_and_the_start_is_not_read_again(app: App, world: MovingWorld) -> None:
    """A machine that sleeps stops eosctl for hours, and somebody helps himself: at rest again, it has other offsets."""
    world.there.connect.after("offsets", once(lambda: run_here_for_a_while(world)))
    report = move(app)
    assert "meanwhile" in world.delivered, "it ran here"
    assert (report.exit_code, world.there.is_running(NAME)) == (ExitCode.PARTIAL, False)
    assert move(app, resume=True).exit_code in (ExitCode.OK, ExitCode.PARTIAL)
    world.lines.append("last")
    for side in world.sides:
        world.run(side)
    assert (world.delivered, world.both) == (world.lines, False)


def test_one_that_rest_does_not_show_yet_and_the_config_topic_has_is_no_rest(app: App, world: MovingWorld) -> None:
    """A tool has just created it again: the workers show it a moment later."""
    world.place("STOPPED")
    side = look_at_side(app, NAME)
    require_at_rest(side, so_that="so nothing")
    known = world.here.connect.connectors.pop(NAME)
    world.here.keep_config(f"target-state-{NAME}", {"state": "STARTED", "state.v2": "STARTED"})
    with pytest.raises(RefusedError, match="was asked to start"):
        require_at_rest(side, so_that="so nothing")
    for key in (f"connector-{NAME}", f"target-state-{NAME}"):
        world.here.keep_config(key, None)
    require_at_rest(side, so_that="so nothing")
    world.here.connect.connectors[NAME] = known
    require_at_rest(side, so_that="so nothing")


def test_doctor_names_a_move_that_was_cut_off(app: App, world: MovingWorld) -> None:
    """It said nothing of a connector that a failed command had left STOPPED here."""
    world.there.connect.fail_next("create_connector", ConnectError("500: try again"))
    assert move(app).exit_code is ExitCode.PARTIAL
    [found] = [row for row in examine(app).rows if row.code == "move_unfinished"]
    assert (found.check, found.severity, found.subject) == ("unfinished", "error", NAME)
    assert found.fix == (
        f"`eosctl connectors move --connector {NAME} --resume` goes on, "
        f"`eosctl connectors move --connector {NAME} --back` goes back."
    )
    assert move(app, resume=True).exit_code in (ExitCode.OK, ExitCode.PARTIAL)
    assert "move_unfinished" not in [row.code for row in examine(app).rows]


def removed_here(world: MovingWorld) -> None:
    world.here.connect.delete(NAME)
    world.here.world.time.pass_until(world.here.world.time.now_s + 30)


@pytest.mark.parametrize("unfinished", [True, False])
def test_what_was_deleted_here_by_hand_ends_with_delete(app: App, world: MovingWorld, *, unfinished: bool) -> None:
    """Its journal stayed open for ever, and a later connector of that name was taken for the one that has moved."""
    if unfinished:
        world.there.connect.after("set_state", once(lambda: (_ for _ in ()).throw(UnreachableError("gone"))))
    move(app)
    removed_here(world)
    report = move(app, DELETE)
    assert (report.exit_code, outcomes(report)) == (ExitCode.OK, {"None": "done_before"})
    world.there.connect.delete(NAME)
    world.there.world.time.pass_until(world.there.world.time.now_s + 30)
    world.place("RUNNING", topic=OUT, file="f")
    again = move(app.with_whole_timeout())
    assert set(outcomes(again).values()) == {"done"}, again.problems


def test_ctrl_c_between_two_connectors_reports_those_that_have_moved(app: App, world: MovingWorld) -> None:
    """Their rows were lost: nothing said which of them are where."""
    add(world, "another", file="other")
    apply = several(app)
    started = "set_state", "resume"

    def interrupt(call: Call) -> None:
        if (call.method, call.what[-1]) == started and call.what[1] == "another":
            world.there.connect.before("plugins", once(lambda: (_ for _ in ()).throw(KeyboardInterrupt)))

    world.there.connect.after("set_state", interrupt)
    report = apply()
    rows = {(row.connector, row.step): row.outcome for row in report.rows}
    assert report.exit_code is ExitCode.INTERRUPTED
    assert (rows["another", "resume"], rows[NAME, None]) == ("done", "refused")
    assert world.here.is_running(NAME)


@pytest.mark.parametrize("direction", [BACK, DELETE])
def test_a_profile_that_leads_elsewhere_now_is_refused(app: App, world: MovingWorld, direction: Direction) -> None:
    """A connector of that name in another group would decide about this one."""
    move(app)
    third = world.here.world.other_group("third", "http://third:8083")
    world.here.world.topics.add_topic("third-configs", 1)
    made = third.add(NAME, {"file": "f"})
    world.here.world.topics.put(
        "third-configs", f"connector-{NAME}".encode(), json.dumps({"properties": made.config}).encode()
    )
    elsewhere = replace(
        app.target, profile=PROFILE, group_id="third", config_topic="third-configs", connect_urls=("http://third:8083",)
    )

    def open_worker(at: App, url: str) -> FakeConnectWorker:
        return third.open_worker(at, url) if "third" in url else world.open_worker(at, url)

    changed = replace(app, target_of=lambda _profile: elsewhere, open_worker=open_worker)
    with pytest.raises(RefusedError, match="leads to group third of Kafka cluster one"):
        move(changed, direction)
    assert NAME in world.here.connect.connectors


def test_what_is_gone_on_with_later_is_audited_up_to_the_stop(app: App, world: MovingWorld) -> None:
    """The last minute before the second look was empty, long after the stop: the side that it left was unproven."""
    world.there.connect.fail_next("create_connector", EosctlError("500"))
    world.here.connect.after("set_state", once(lambda: world.lines.append("more")))
    assert move(app).exit_code is ExitCode.PARTIAL
    time = world.here.world.time
    time.pass_until(time.now_s + 600)
    report = move(app.with_whole_timeout(), resume=True)
    assert [each.verdict for each in report.data.moves[0].audits] == ["exactly_once", "exactly_once"]
    assert report.exit_code is ExitCode.OK


def test_records_that_are_gone_since_are_not_proven(app: App, world: MovingWorld) -> None:
    """Retention removes the output up to the handover before the audit comes."""
    world.there.connect.after("set_state", once(lambda: (_ for _ in ()).throw(UnreachableError("gone"))))
    world.here.connect.after("set_state", once(lambda: world.lines.append("more")))
    assert move(app).exit_code is ExitCode.PARTIAL
    topics = world.here.world.topics
    for partition in topics.state.topics[OUT].partitions:
        partition.begin = partition.end
        partition.records.clear()
        partition.batches.clear()
    report = move(app.with_whole_timeout(), resume=True)
    assert report.data.moves[0].audits[0].verdict == "unproven"


def test_one_that_somebody_stopped_since_the_plan_is_left_to_him(app: App, world: MovingWorld) -> None:
    """Two people who move it to two groups at once: each found it at rest, and started it."""
    asked: list[Call] = []
    of_a_plan: list[int] = []

    def stop(call: Call) -> None:
        asked.append(call)
        if of_a_plan and len(asked) == 2 * of_a_plan[0]:  # the last of the look before the first step
            world.here.connect.set_target(NAME, "STOPPED")
            world.here.world.time.pass_until(world.here.world.time.now_s + 5)

    world.there.connect.after("validate", stop)
    plan = prepare_move(app, Selection((NAME,)), MoveRequest(to=PROFILE))
    of_a_plan.append(len(asked))
    assert plan.apply is not None
    report = plan.apply()
    assert (report.exit_code, outcomes(report)["stop"]) == (ExitCode.PARTIAL, "failed")
    assert "not by this command" in report.problems[0].message
    assert NAME not in world.there.connect.connectors


def test_what_is_the_same_of_all_is_said_once(tmp_path: Path) -> None:
    world = MovingWorld(2, mode="disabled")
    add(world, "another", file="other")
    plan = prepare_move(world.app(tmp_path), Selection(all_connectors=True), MoveRequest(to=PROFILE))
    report = plan.report()
    assert [problem.code for problem in report.problems] == ["at_least_once", "at_least_once"]
    notes = [line for line in CONNECTORS_MOVE_PLAN.text.lines(report) if "kept elsewhere" in line]
    assert len(notes) == 1


def test_a_topic_that_the_worker_made_at_the_start_has_its_first_commit(tmp_path: Path) -> None:
    """It had no offset yet: its own topic was not there before the start, and --delete never saw a commit in it."""
    world = MovingWorld(2, lines=[], config={"offsets_storage_topic": OWN})
    app = world.app(tmp_path)
    assert move(app).exit_code in (ExitCode.OK, ExitCode.PARTIAL)
    world.lines.append("first")
    world.run(world.there)
    assert outcomes(move(app, DELETE)) == {"check": "done", "remove": "done"}


def hidden_here(world: MovingWorld) -> None:
    """A producer that nobody ends holds a transaction open on the offsets partition."""
    topics = world.here.world.topics
    producer = topics.take_id("stranger")
    record = OutRecord(world.here.offsets, encode_key(NAME, PARTITION), encode_offset({"position": 9}))
    topics.state.write_in("stranger", producer, record, topics.partition_of(record))


def test_an_open_transaction_that_hides_an_offset_keeps_it_here(app: App, world: MovingWorld) -> None:
    hidden_here(world)
    with suppress(EosctlError):
        report = move(app)
        assert report.exit_code is ExitCode.PARTIAL
    assert not world.there.is_running(NAME)


@pytest.mark.parametrize("name", [",x", "a-b", "'ü \"q\"'"])
def test_keys_are_carried_as_they_are_but_for_the_name(app: App, world: MovingWorld, name: str) -> None:
    """Spelled otherwise, twice, deleted, or of a partition that Connect's own producer would not choose."""
    here, there = world.here.world.topics, world.there.world.topics
    odd = {
        b'[ "c" , {"filename":"x"}]': b'{"position":1}',
        b'["c",{"a":1,"b":"\xc3\xbc"}]': b'{"position":2}',
        b'["c",{"b":"\xc3\xbc","a":1}]': b'{"position":3}',
        b'["c",{"filename":"gone"}]': None,
        b'["other",{"filename":"x"}]': b'{"position":4}',
    }
    for key, value in odd.items():
        here.put(world.here.offsets, key, value)
    world.names[PROFILE] = name
    report = move(app, rename=name)
    assert "failed" not in outcomes(report).values(), report.problems
    quoted = json.dumps(name, ensure_ascii=False).encode()
    wanted = {key.replace(b'"c"', quoted): value for key, value in odd.items() if b'"c"' in key and value is not None}
    found = there.newest(world.there.offsets)
    assert {key: found.get(key) for key in wanted} == wanted
    assert not [key for key in found if key and b"gone" in key and quoted in key]
    assert world.there.position(world.there.offsets, name) == len(world.lines)


def test_one_whose_switch_was_cut_off_is_refused(app: App) -> None:
    """Its own way on, which doctor names, starts it here: then it ran on both sides."""
    side = look_at_side(app, NAME)
    side.switch_journal().write("begin", origin="global", target=OWN, state="RUNNING")
    with pytest.raises(RefusedError, match="a switch of c from global to own was begun") as caught:
        move(app)
    assert f"eosctl offsets switch --connector {NAME} --to {OWN}" in str(caught.value.hint)
    side.switch_journal().write("end")
    assert move(app).exit_code in (ExitCode.OK, ExitCode.PARTIAL)


def test_one_whose_creation_was_cut_off_is_refused(app: App) -> None:
    """It went without the offsets that it was to get, and nothing there kept it from being resumed."""
    side = look_at_side(app, NAME)
    journal = journal_of_create(app, NAME, cluster_id=side.cluster_id)
    journal.write("begin", connector=NAME, state="RUNNING", origin="offsets.json")
    journal.write("start", step="create")
    with pytest.raises(RefusedError) as refused:
        move(app)
    assert str(journal.path) in str(refused.value.hint)
    journal.path.unlink()
    assert move(app).exit_code in (ExitCode.OK, ExitCode.PARTIAL)


def doctor_there(world: MovingWorld, app: App) -> App:
    """Doctor's look at the other side, on the same machine."""
    return replace(app, target=world.target_of(PROFILE))


def advice(app: App) -> list[str]:
    return [str(row.fix) for row in examine(app).rows if row.code == "at_rest"]


def test_doctor_advises_nobody_to_start_what_moves_or_has_moved(app: App, world: MovingWorld) -> None:
    """Its line about a STOPPED connector named the command that starts it: on the second side, or without offsets."""
    there = doctor_there(world, app)
    world.there.connect.fail_next("offsets", UnreachableError("the network is gone"))
    assert move(app).exit_code is ExitCode.PARTIAL
    for each in (app, there):
        rows = [row for row in examine(each).rows if row.code == "move_unfinished"]
        assert [(row.severity, row.subject) for row in rows] == [("error", NAME)]
        assert advice(each)
        assert "connectors resume" not in "".join(advice(each))
    assert move(app, resume=True).exit_code in (ExitCode.OK, ExitCode.PARTIAL)
    assert "connectors resume" not in "".join(advice(app))
    assert f"connectors move --connector {NAME} --delete" in "".join(advice(app))
    assert "move_unfinished" not in [row.code for each in (app, there) for row in examine(each).rows]


def test_what_has_moved_is_not_resumed_here(app: App, world: MovingWorld) -> None:
    """`connectors resume` used to start it beside the one in the other group."""
    while_stopped(world)
    assert prepare_resume(app, NAME).apply is None, "it runs"
    assert move(app).exit_code is ExitCode.OK
    with pytest.raises(RefusedError) as refused:
        prepare_resume(app, NAME)
    assert "--back" in str(refused.value.hint)
    with pytest.raises(RefusedError):
        prepare_resume(replace(app, target=replace(app.target, group_id=None)), NAME)
    assert move(app, BACK).exit_code is ExitCode.OK
    for target in (app.target, replace(app.target, group_id=None)):
        assert prepare_resume(replace(app, target=target), NAME).apply is None, "it runs here again"


def test_where_a_journal_of_moves_cannot_be_read_nothing_is_resumed(app: App, world: MovingWorld) -> None:
    """It counted as no move."""
    while_stopped(world)
    assert move(app).exit_code is ExitCode.OK
    path = look_at_side(app, NAME).journal().path
    path.write_text(path.read_text().replace('"direction": "there"', '"direction": "elsewhere"'))
    with pytest.raises(RefusedError) as refused:
        prepare_resume(app, NAME)
    assert str(path) in str(refused.value.hint)


def test_a_cut_off_write_that_cannot_be_seen_may_be_open(app: App, world: MovingWorld) -> None:
    """It was taken for none, and the next write under its id would have aborted it."""
    own, hidden = offsets_transactional_id(world.there.connect.group_id), world.there.world.brokers.deny_describe
    hidden.add(own)
    report = move(app)
    assert (report.exit_code, world.there.connect.connectors[NAME].target) == (ExitCode.PARTIAL, "STOPPED")
    hidden.clear()
    move(app, resume=True)
    assert world.there.connect.connectors[NAME].target == "STARTED"
