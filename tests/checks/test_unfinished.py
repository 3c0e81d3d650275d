"""What doctor says of commands that were cut off on this machine."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.checks.plan import examine
from eosctl.checks.rows import DoctorRow
from eosctl.checks.unfinished import unfinished_work
from eosctl.core.java.json import encode_offset
from eosctl.core.records import TopicDescription
from eosctl.errors import ConnectError, ExitCode, UnauthorizedError
from eosctl.group.observation.rules import ObservedConnector
from eosctl.offsets.switch.traces import MOST_CANDIDATES
from eosctl.rescue.apply import apply_rescue
from eosctl.rescue.plan import plan_rescue
from eosctl.state.journal import journal_of
from tests.fakes.faults import Call, KilledError
from tests.fakes.rescue_scene import CLUSTER, Scene
from tests.fakes.rolling import FakeDriver, roll
from tests.fakes.rolling import world as roll_world
from tests.fakes.switching import NAME, OWN, URL, SwitchWorld, switch

STOPPED = ObservedConnector(NAME, "source", {}, {"connector": "STOPPED"})


def test_a_switch_that_failed_is_the_first_that_doctor_names(app: App, world: SwitchWorld) -> None:
    """It said nothing of a connector that a failed command had left STOPPED."""
    world.connect.fail_next("put_connector_config", ConnectError("500: try again"))
    assert switch(app, OWN).exit_code is ExitCode.PARTIAL
    first = examine(app).rows[0]
    assert (first.check, first.code, first.severity, first.subject) == (
        ("unfinished", "switch_unfinished", "error", NAME)
    )
    assert "the connector is STOPPED, and was RUNNING before" in str(first.message)
    words = f"eosctl offsets switch --connector {NAME} --to"
    assert first.fix == f"`{words} {OWN}` goes on, `{words} global` goes back."
    assert switch(app, OWN).exit_code is ExitCode.OK
    assert "switch_unfinished" not in [row.code for row in examine(app).rows]


def elsewhere(app: App) -> list[DoctorRow]:
    """What doctor says of a switch by the cluster alone."""
    return [row for row in examine(app).rows if row.code == "switch_begun_elsewhere"]


@pytest.mark.parametrize(("origin", "target"), [("global", OWN), (OWN, "global")])
@pytest.mark.parametrize("way", ["on", "back"])
def test_a_switch_that_another_machine_left_half_done_is_seen_in_the_cluster(
    world: SwitchWorld, tmp_path: Path, origin: str, target: str, way: str
) -> None:
    """Only the machine that began it could say why the connector was STOPPED."""
    there, here = world.app(tmp_path / "there"), world.app(tmp_path / "here")
    if origin == OWN:
        assert switch(there, OWN).exit_code is ExitCode.OK
    world.connect.fail_next("set_state", ConnectError("500: try again"), skip=1)
    assert switch(there, target).exit_code is ExitCode.PARTIAL
    assert examine(there).rows[0].code == "switch_unfinished"
    assert elsewhere(there) == [], "its journal tells more"
    [found] = elsewhere(here)
    assert (found.severity, found.subject) == ("warning", NAME)
    assert found.evidence == {"origin": origin, "target": target}
    assert f"its config went from offsets topic {origin} to {target}" in str(found.message)
    assert f"`eosctl offsets switch --connector {NAME} --to {target}`" in str(found.fix)
    assert switch(here, target if way == "on" else origin).exit_code is ExitCode.OK
    here.worker(URL).set_state(NAME, "resume")
    assert elsewhere(world.app(tmp_path / "third")) == []
    assert world.delivered == world.lines, "nothing read again, nothing lost"


TARGET = f"{NAME}-offsets"


@pytest.mark.parametrize("way", ["on", "back"])
def test_one_that_was_cut_off_before_the_config_is_told_by_what_was_written_to_the_new_topic(
    world: SwitchWorld, tmp_path: Path, way: str
) -> None:
    """It was told once the config named the new topic, and before that the connector was at rest, as if meant."""
    there, here = world.app(tmp_path / "there"), world.app(tmp_path / "here")
    world.connect.fail_next("put_connector_config", ConnectError("500: try again"))
    assert switch(there, TARGET).exit_code is ExitCode.PARTIAL
    assert elsewhere(there) == [], "its journal tells more"
    [found] = elsewhere(here)
    assert (found.severity, found.subject) == ("warning", NAME)
    assert found.evidence == {"origin": "global", "target": TARGET}
    command = f"eosctl offsets switch --connector {NAME} --to {TARGET}"
    assert f"`{command} --dry-run` shows what is left" in str(found.fix)
    assert "resume" not in str(found.fix), "it would start before its offsets are where its config says"
    if way == "on":
        assert switch(here, TARGET).exit_code is ExitCode.OK
    here.worker(URL).set_state(NAME, "resume")
    assert elsewhere(world.app(tmp_path / "third")) == []
    assert world.delivered == world.lines, "nothing read again, nothing lost"


def test_what_a_switch_back_leaves_behind_is_no_half_done_one(world: SwitchWorld, tmp_path: Path) -> None:
    """The topic has the connector's offsets, and no config names it: they are older than the config."""
    app = world.app(tmp_path / "there")
    app.worker(URL).set_state(NAME, "stop")
    assert switch(app, TARGET).exit_code is ExitCode.OK
    assert switch(app, "global").exit_code is ExitCode.OK
    assert world.stored(TARGET, world.key) == len(world.lines)
    assert elsewhere(world.app(tmp_path / "here")) == []


def at_rest(world: SwitchWorld, tmp_path: Path) -> App:
    """The connector is STOPPED, as in a standby, and nobody has begun a switch."""
    app = world.app(tmp_path)
    app.worker(URL).set_state(NAME, "stop")
    return app


def mirrored(world: SwitchWorld, topic: str, *keys: bytes, position: int) -> None:
    """Another cluster's, or another group's, offsets topic, with newer records."""
    world.topics.add_topic(topic, 1, {"cleanup.policy": "compact"})
    for key in keys:
        world.topics.put(topic, key, encode_offset({"position": position}))


@pytest.mark.parametrize("others", [(), (b'["another",{"filename":"f"}]',)], ids=["alone", "with others"])
def test_the_offsets_topic_of_another_cluster_or_group_is_no_begun_switch(
    world: SwitchWorld, tmp_path: Path, others: tuple[bytes, ...]
) -> None:
    """In a standby, or after the connector went to another group, doctor printed a switch and a resume to paste."""
    app = at_rest(world, tmp_path)
    mirrored(world, "primary.connect-offsets", world.key, *others, position=len(world.lines) + 4)
    assert elsewhere(app) == []


def test_the_topic_of_a_group_with_other_connectors_is_none_even_with_the_same_offsets(
    world: SwitchWorld, tmp_path: Path
) -> None:
    app, other = at_rest(world, tmp_path), b'["another",{"filename":"f"}]'
    mirrored(world, "moved-offsets", world.key, other, position=len(world.lines))
    assert elsewhere(app) == []


def not_looked_at(app: App) -> list[DoctorRow]:
    """What doctor says that it does not know of switches."""
    return [row for row in examine(app).rows if (row.check, row.code) == ("unfinished", "not_checked")]


def test_a_topic_that_cannot_be_read_hides_no_switch_and_is_said(world: SwitchWorld, tmp_path: Path) -> None:
    """One such topic ended the look at all others, and nobody said so."""
    there, here = world.app(tmp_path / "there"), world.app(tmp_path / "here")
    world.connect.fail_next("put_connector_config", ConnectError("500: try again"))
    assert switch(there, TARGET).exit_code is ExitCode.PARTIAL
    assert not_looked_at(here) == []
    mirrored(world, "a-offsets", world.key, position=1)

    def refuse(call: Call) -> None:
        if "a-offsets" in cast("Collection[str]", call.what[0]):
            raise UnauthorizedError("READ on a-offsets is denied")

    world.topics.before("newest_of", refuse)
    assert [found.evidence for found in elsewhere(here)] == [{"origin": "global", "target": TARGET}]
    [unknown] = not_looked_at(here)
    assert (unknown.severity, unknown.subject) == ("info", NAME)
    assert "1 topic was not read (a-offsets: READ on a-offsets is denied)" in str(unknown.message)


def test_more_topics_than_are_looked_at_hide_no_offsets_topic(world: SwitchWorld, tmp_path: Path) -> None:
    """Topics were taken by the alphabet: a connector named db with many tables lost sight of its offsets topic."""
    there, here = world.app(tmp_path / "there"), world.app(tmp_path / "here")
    world.connect.fail_next("put_connector_config", ConnectError("500: try again"))
    assert switch(there, TARGET).exit_code is ExitCode.PARTIAL
    for number in range(MOST_CANDIDATES):
        world.topics.add_topic(f"a.{NAME}.{number}", 1)
        world.topics.add_topic(f"abc{number}", 1)
    assert len(elsewhere(here)) == 1
    assert "1 topic was not read" in str(not_looked_at(here)[0].message)


def test_a_switch_is_seen_without_the_right_to_read_settings(
    world: SwitchWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without DESCRIBE_CONFIGS no topic looked compacted, and all were passed over in silence."""
    there, here = world.app(tmp_path / "there"), world.app(tmp_path / "here")
    world.connect.fail_next("put_connector_config", ConnectError("500: try again"))
    assert switch(there, TARGET).exit_code is ExitCode.PARTIAL
    describe = world.topics.describe

    def without_configs(names: Collection[str]) -> Mapping[str, TopicDescription]:
        return {name: replace(found, config={}) for name, found in describe(names).items()}

    monkeypatch.setattr(world.topics, "describe", without_configs)
    assert len(elsewhere(here)) == 1


def test_topics_are_looked_at_only_while_a_connector_is_stopped(world: SwitchWorld, tmp_path: Path) -> None:
    asked: list[Call] = []
    world.topics.before("newest_of", asked.append)
    assert elsewhere(world.app(tmp_path)) == []
    assert asked == []


def test_a_stopped_connector_that_was_switched_here_is_no_finding(app: App) -> None:
    app.worker(URL).set_state(NAME, "stop")
    assert switch(app, OWN).exit_code is ExitCode.OK
    assert elsewhere(app) == []


def test_what_is_at_work_now_is_no_error(app: App, world: SwitchWorld) -> None:
    world.connect.fail_next("put_connector_config", ConnectError("500: try again"))
    switch(app, OWN)
    with journal_of(app, "offsets-switch", NAME, cluster_id=world.cluster_id).hold("it"):
        [finding] = unfinished_work(app, world.cluster_id, connectors=[STOPPED])
    assert (finding.severity, finding.fix) == ("info", "Wait for it.")


def test_an_upgrade_that_was_cut_off_is_named(tmp_path: Path) -> None:
    there = roll_world(w1="disabled", w2="disabled")
    there.kill.at = 30
    app = there.app(tmp_path)
    options = ("--unit", "kafka connect@{host}")
    with pytest.raises(KilledError):
        roll(app, FakeDriver(there), driver_options=options, accepted=frozenset({"worker_health"}))
    [finding] = unfinished_work(app, there.cluster_id, connectors=[])
    assert (finding.code, finding.severity) == ("upgrade_unfinished", "error")
    way_on = "eosctl upgrade apply --resume --driver sandbox --unit 'kafka connect@{host}' --accept-gate worker_health"
    assert finding.fix.startswith(f"`{way_on}` goes on"), "it left out what the driver was told"
    there.kill.at = None
    assert roll(app, FakeDriver(there), resume=True).exit_code is ExitCode.OK
    assert list(unfinished_work(app, there.cluster_id, connectors=[])) == []


def cut_off(tmp_path: Path, event: str) -> tuple[Scene, App]:
    """A rescue that was killed at its first call after it wrote `event` into its journal."""
    kill_at = 0
    while True:
        kill_at += 1
        scene = Scene(state_dir=tmp_path / str(kill_at))
        scene.kill.at = kill_at
        app = scene.app(tmp_path / str(kill_at))
        try:
            apply_rescue(app, plan_rescue(app, "c"))
        except KilledError:
            scene.kill.at = None
            journal = journal_of(app, "rescue", "c", cluster_id=CLUSTER)
            if any(entry.get("event") == event for entry in journal.entries()):
                return scene, app


def test_a_rescue_that_was_cut_off_is_named_until_it_is_over(tmp_path: Path) -> None:
    """Its tasks stayed FAILED, and doctor said nothing of what had been done for them already."""
    _scene, app = cut_off(tmp_path, "done")
    [found] = [row for row in examine(app).rows if row.check == "unfinished"]
    assert (found.code, found.severity, found.subject) == ("rescue_unfinished", "error", "c")
    assert ", is not over; done: fence" in str(found.message)
    assert found.fix == "`eosctl rescue --connector c` goes on."
    assert apply_rescue(app, plan_rescue(app, "c")).exit_code is ExitCode.OK
    assert [row for row in examine(app).rows if row.check == "unfinished"] == []


def test_a_rescue_of_an_earlier_task_set_is_no_matter(tmp_path: Path) -> None:
    scene, app = cut_off(tmp_path, "done")
    scene.commit(2)
    assert "rescue_unfinished" not in [row.code for row in examine(app).rows]
