"""`upgrade apply` of a dedicated MirrorMaker, whose nodes no request reaches: group, files and topics tell."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eosctl.app import App
from eosctl.core.workers.config import parse_worker_config
from eosctl.core.workers.modes import Mode
from eosctl.errors import ExitCode, RefusedError, UnsupportedError, UsageError
from eosctl.report import Report
from eosctl.upgrade.drivers import Driver, DriverResult
from eosctl.upgrade.drivers.commands import CommandDriver, PrintDriver
from eosctl.upgrade.drivers.systemd import SystemdDriver
from eosctl.upgrade.roll.prepare import RollRequest, prepare_roll
from eosctl.upgrade.roll.roll import apply_roll
from eosctl.upgrade.status import verify_upgrade
from tests.fakes.faults import worth_a_kill
from tests.fakes.rolling import LEADER_ID, W1, W2, W3, FakeDriver, RollWorld, came_to_its_end, outcomes, roll, world
from tests.fakes.world import STATUSES

N1, N2, N3 = "10.0.0.1", "10.0.0.2", "10.0.0.3"
VERSIONS = frozenset({"worker_versions"})
"""Nothing tells the version of a node that runs no connector."""
UNPROVEN = "by file and membership; nothing without REST proves the mode"
MIRROR_SOURCE = {
    "name": "a",
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "source.consumer.isolation.level": "read_committed",
}
MM2 = """clusters=a,b
a->b.enabled=true
b.bootstrap.servers=localhost:1
b.group.id=g
config.storage.topic=connect-configs
offset.storage.topic=connect-offsets
status.storage.topic=connect-status
"""


def nodes(hosts: Sequence[str] = (N1, N2, N3), *, mode: str = "disabled", internal: bool = False) -> RollWorld:
    """Nodes at these hosts, and the topic in which they say what their connectors do; no request reaches them."""
    there = world(**{f"w{number}": mode for number, _host in enumerate(hosts, 1)})
    there.connect.mirror_maker, there.connect.internal = True, internal
    there.connect.hosts = dict(zip((W1, W2, W3), hosts, strict=False))
    there.connect.down.update((W1, W2, W3))
    there.keep_config("connector-a", {"properties": MIRROR_SOURCE})
    there.topics.add_topic(STATUSES, 1, {"cleanup.policy": "compact"})
    return there


@dataclass
class NodeDriver(FakeDriver):
    """Restarts the process that `at` names; what is not there is the node of that host."""

    at: dict[str, str] = field(default_factory=dict)

    def for_mirror_maker(self, _setting: str) -> Driver:
        return self

    def bring(self, app: App, workers: Sequence[str], mode: Mode) -> DriverResult:
        return super().bring(app, [self._url(*workers)], mode)

    def set_alone(self, app: App, worker: str, mode: Mode) -> DriverResult:
        return super().set_alone(app, self._url(worker), mode)

    def _url(self, name: str) -> str:
        of_host = {host: url for url, host in self.world.connect.hosts.items()}
        return self.at.get(name) or of_host.get(name, name)


def brought(there: RollWorld, tmp_path: Path, target: Mode = Mode.PREPARING) -> Report:
    return roll(there.app(tmp_path), NodeDriver(there), target, accepted=VERSIONS)


def test_every_node_is_restarted_the_leader_last_and_what_proves_it_is_said(tmp_path: Path) -> None:
    """It was refused: the mode of no worker could be proven."""
    there = nodes()
    report = brought(there, tmp_path)
    assert report.exit_code is ExitCode.OK, report.problems
    assert there.starts == [(W2, "preparing"), (W3, "preparing"), (W1, "preparing")]
    assert outcomes(report) == [("preparing", name, "done") for name in (N2, N3, N1)]
    assert there.connect.opened == [], "nobody was asked by REST"
    details = [str(row.detail) for row in report.rows]
    assert f"member member {W2} left, and member member {W2} 1 joined from {N2}" in details[0]
    assert details[0].endswith(UNPROVEN)
    assert not details[-1].endswith(f"as the leader it claimed {LEADER_ID}"), "it does not lead any more"


def test_a_lone_node_reaches_enabled_and_its_ids_prove_it(tmp_path: Path) -> None:
    there = nodes([N1])
    report = brought(there, tmp_path, Mode.ENABLED)
    assert report.exit_code is ExitCode.OK, report.problems
    preparing, enabled = (str(row.detail) for row in report.rows)
    assert f"as the leader it claimed {LEADER_ID}, as no disabled worker does" in preparing
    assert "a/0 took transactional ids, as tasks of an enabled worker do" in enabled
    assert UNPROVEN not in preparing + enabled
    verified = verify_upgrade(there.app(tmp_path), Mode.ENABLED)
    assert (verified.exit_code, verified.rows) == (ExitCode.OK, []), "the same members as then"


def test_followers_that_reach_no_leader_are_not_enabled(tmp_path: Path) -> None:
    """Their exactly-once tasks ask the leader to fence, over REST: all of them would fail."""
    there = nodes()
    gates = prepare_roll(there.app(tmp_path), RollRequest(Mode.ENABLED, accepted=VERSIONS), NodeDriver(there)).blocking
    [gate] = gates
    assert (gate.id, gate.status) == ("internal_rest", "fail")
    assert "dedicated.mode.enable.internal.rest=true" in gate.fix


def test_nodes_that_reach_each_other_are_called_by_their_urls_and_enabled(tmp_path: Path) -> None:
    """They were workers that do not answer: GET / is nothing that their REST interface offers."""
    there = nodes(internal=True)
    report = brought(there, tmp_path, Mode.ENABLED)
    assert report.exit_code is ExitCode.OK, report.problems
    assert {name for _mode, name, _outcome in outcomes(report)} == {W1, W2, W3}
    assert there.connect.opened == []


def test_a_claim_that_does_not_come_is_a_node_that_is_still_disabled(tmp_path: Path) -> None:
    there = nodes([N1])
    report = roll(there.app(tmp_path), NodeDriver(there, forgets={W1}), Mode.PREPARING)
    assert report.exit_code is ExitCode.PARTIAL
    assert f"{N1} leads the group and has not claimed its transactional id: is it disabled?" in str(report.problems[0])


def test_a_failed_task_is_seen_in_the_status_topic(tmp_path: Path) -> None:
    there = nodes()
    there.after_start.append(lambda _url: there.connector.fail(0, trace="java.io.IOException: disk"))
    report = brought(there, tmp_path)
    assert "gate connectors_healthy: a/0 is FAILED: " in report.problems[0].message
    assert "disk" in report.problems[0].message


def test_without_the_status_topic_it_takes_a_waiver(tmp_path: Path) -> None:
    there = nodes()
    del there.topics.topics[STATUSES]
    gates = {str(each.id): each for each in prepare_roll(
        there.app(tmp_path), RollRequest(Mode.PREPARING), NodeDriver(there)
    ).blocking}  # fmt: skip
    assert set(gates) == {"connectors_healthy", "worker_versions"}
    assert "there is no topic connect-status" in gates["connectors_healthy"].evidence


SAME = ("10.0.0.9", "10.0.0.9", "10.0.0.9")
FIRST, SECOND, THIRD = "10.0.0.9", "10.0.0.9#2", "10.0.0.9#3"


def test_nodes_of_one_host_go_by_count(tmp_path: Path) -> None:
    """Nothing tells which member is which process: the one that left is the one that was restarted."""
    there = nodes(SAME)
    driver = NodeDriver(there, at={FIRST: W3, SECOND: W1, THIRD: W2})
    report = roll(there.app(tmp_path), driver, Mode.PREPARING, accepted=VERSIONS)
    assert report.exit_code is ExitCode.OK, report.problems
    assert {url for url, _mode in there.starts} == {W1, W2, W3}
    assert len(there.starts) == 3
    assert "3 nodes at 10.0.0.9 can't be distinguished, and are counted" in str(report.rows[0].detail)
    back = roll(there.app(tmp_path), driver, Mode.DISABLED, accepted=VERSIONS)
    assert (back.exit_code, set(there.workers.values())) == (ExitCode.OK, {"disabled"}), back.problems


def test_a_command_that_restarts_the_same_process_twice_is_found(tmp_path: Path) -> None:
    there = nodes(SAME[:2])
    report = roll(there.app(tmp_path), NodeDriver(there, at={FIRST: W2, SECOND: W2}), Mode.PREPARING, accepted=VERSIONS)
    assert report.exit_code is ExitCode.PARTIAL
    assert "joined again, which it had not restarted" in report.problems[0].message
    assert there.workers[W1] == "disabled"


@pytest.mark.parametrize(
    ("hosts", "target"), [([N1], Mode.ENABLED), ((N1, N2), Mode.PREPARING), (SAME[:2], Mode.PREPARING)]
)
def test_killed_anywhere_a_second_run_ends_as_if_nothing_had_happened(
    tmp_path: Path, hosts: Sequence[str], target: Mode
) -> None:
    """Whatever a kill can leave."""
    there, driver = cut_off(hosts)
    app = there.app(tmp_path / "undisturbed")
    undisturbed = partial(roll, app, driver, target, accepted=VERSIONS)
    kills = worth_a_kill(there.kill, undisturbed, partial(there.left, app.state_dir))
    assert (len(kills) > 8, there.kill.ticks > 15) == (True, True), "fewer than that were never made"
    for kill_at in kills:
        there, driver = cut_off(hosts)
        there.kill.at = kill_at
        app = there.app(tmp_path / str(kill_at))
        assert not came_to_its_end(app, driver, target, accepted=VERSIONS)
        ends_as_if_nothing_had_happened(there, driver, app, target)


@pytest.mark.parametrize(
    ("hosts", "target", "every"),
    [([N1], Mode.ENABLED, 2), ((N1, N2), Mode.PREPARING, 3), (SAME[:2], Mode.PREPARING, 3)],
)
def test_interrupted_anywhere_a_second_run_ends_as_if_nothing_had_happened(
    tmp_path: Path, hosts: Sequence[str], target: Mode, every: int
) -> None:
    """A second run is made for all that a first one can leave: what it finds is the same wherever it was cut off."""
    kill_at = 0
    gone_on_from: set[str] = set()
    while True:
        kill_at += every
        there, driver = cut_off(hosts)
        there.kill.error, there.kill.at = KeyboardInterrupt, kill_at
        app = there.app(tmp_path / "state")
        if came_to_its_end(app, driver, target, accepted=VERSIONS):
            break
        left = there.left(app.state_dir)
        if left not in gone_on_from:
            gone_on_from.add(left)
            ends_as_if_nothing_had_happened(there, driver, app, target)
        shutil.rmtree(app.state_dir, ignore_errors=True)
    assert kill_at > 15, "fewer calls than that were never made"


def cut_off(hosts: Sequence[str]) -> tuple[RollWorld, NodeDriver]:
    """What is to be cut off."""
    there = nodes(hosts)
    return there, NodeDriver(there, at={FIRST: W2, SECOND: W1} if hosts[0] == FIRST else {})


def ends_as_if_nothing_had_happened(there: RollWorld, driver: NodeDriver, app: App, target: Mode) -> None:
    """What a run that was cut off has left is gone on from."""
    where, there.kill.at = f"cut off at call {there.kill.ticks}", None
    begun = any("begin" in path.read_text() for path in app.state_dir.rglob("*.ndjson"))
    steps = len(there.connect.hosts) * (2 if target is Mode.ENABLED else 1)
    again = roll(app, driver, target, resume=begun, accepted=VERSIONS)
    assert again.exit_code is ExitCode.OK, (where, again.problems)
    assert set(there.workers.values()) == {target.value}, where
    assert len(there.starts) <= steps + 1, f"{where}: one step at most is done twice"


def write_mm2(path: Path, mode: str = "disabled") -> Path:
    path.write_text(f"{MM2}b.exactly.once.source.support={mode}\n")
    return path


def restarting(app: App, there: RollWorld, files: dict[str, Path], node_of: Callable[[str], str]) -> App:
    """The App; when the driver says that it restarts a node, its process comes up with what its file says."""

    def listen(event: Any) -> None:
        there.events.append(event)
        name, told, _mode = event.message.partition(": restarting as ")
        if told:
            there.time.later(1.0, lambda: start(name))

    def start(name: str) -> None:
        url = node_of(name)
        there.stop(url)
        there.files[url] = files[name].read_text().rpartition("=")[2].strip()
        there.start(url)

    return replace(app, on_event=listen)


def test_the_command_driver_edits_the_property_of_the_target(tmp_path: Path) -> None:
    there, file = nodes([N1]), write_mm2(tmp_path / f"{N1}.properties")
    app = restarting(there.app(tmp_path), there, {N1: file}, lambda _name: W1)
    driver = CommandDriver("true {host} {number} {mode}", properties=str(tmp_path / "{host}.properties"))
    prepared = prepare_roll(app, RollRequest(Mode.ENABLED, settle_timeout_s=60.0), driver)
    actions = prepared.driver.actions([N1], Mode.PREPARING)
    assert actions == [f"set b.exactly.once.source.support=preparing in {file}", f"run true {N1} 1 preparing"]
    report = apply_roll(app, prepared)
    assert report.exit_code is ExitCode.OK, report.problems
    assert file.read_text() == f"{MM2}b.exactly.once.source.support=enabled\n"
    assert f"{file} says enabled; member " in str(report.rows[-1].detail)


def test_what_the_command_driver_can_know_wrong_before_anything_is_changed(tmp_path: Path) -> None:
    there, plain = nodes([N1]), tmp_path / "plain.properties"
    plain.write_text("group.id=g\n")
    app = there.app(tmp_path)
    with pytest.raises(RefusedError, match="is not the file of a dedicated MirrorMaker"):
        prepare_roll(app, RollRequest(Mode.PREPARING), CommandDriver("true", properties=str(plain)))
    with pytest.raises(UsageError, match=r"has \{port\}, which is none of \{host\}, \{number\}"):
        prepare_roll(app, RollRequest(Mode.PREPARING), CommandDriver("x {port}", set_config="true"))
    same = nodes(SAME).app(tmp_path)
    with pytest.raises(RefusedError, match="is the same for") as caught:
        prepare_roll(same, RollRequest(Mode.PREPARING), CommandDriver("x {host}", set_config="true"))
    assert "Use {host} or {number} in --restart-command" in str(caught.value.hint)
    with pytest.raises(UnsupportedError, match="--driver systemd knows nothing of a dedicated MirrorMaker"):
        prepare_roll(app, RollRequest(Mode.PREPARING), SystemdDriver("u", "f"))


def test_a_file_that_says_otherwise_ends_it(tmp_path: Path) -> None:
    there, file = nodes([N1]), write_mm2(tmp_path / "mm2.properties")
    app = restarting(there.app(tmp_path), there, {N1: file}, lambda _name: W1)
    driver = CommandDriver("true", set_config="true", properties=str(file))
    prepared = prepare_roll(app, RollRequest(Mode.PREPARING, settle_timeout_s=60.0), driver)
    assert (
        f"gate mode_proven: {file} says disabled instead of preparing" in apply_roll(app, prepared).problems[0].message
    )


def test_a_person_is_told_the_property_and_waited_for(tmp_path: Path) -> None:
    there, file = nodes([N1]), write_mm2(tmp_path / "mm2.properties")
    app = there.app(tmp_path)

    def listen(event: Any) -> None:
        there.events.append(event)
        if event.message.startswith("NOW: "):
            there.time.later(130.0, by_hand)

    def by_hand() -> None:
        there.stop(W1)
        there.files[W1] = "preparing"
        there.start(W1)

    config = parse_worker_config(file.read_text(), source=str(file), group_id="g")
    app = replace(app, on_event=listen, target=replace(app.target, worker_configs=(config,)))
    report = roll(app, PrintDriver(), Mode.PREPARING)
    assert report.exit_code is ExitCode.OK, report.problems
    [told] = [event.message for event in there.events if event.message.startswith("NOW: ")]
    assert told == f"NOW: set b.exactly.once.source.support=preparing in the configuration of {N1} and restart it"
    assert "its mode is taken from its restart (restarted by hand)" in str(report.rows[0].detail)


def test_a_file_is_taken_for_the_mode_only_where_that_is_accepted(tmp_path: Path) -> None:
    """A file that nobody restarted for says preparing as well: each node gets both passes."""
    there, file = nodes([N1], mode="preparing"), write_mm2(tmp_path / "mm2.properties", "preparing")
    driver = CommandDriver("true", properties=str(file))

    def steps(**more: Any) -> list[str]:
        prepared = prepare_roll(there.app(tmp_path), RollRequest(Mode.ENABLED, **more), driver)
        return [mode.value for mode, _name in prepared.steps()]

    assert steps() == ["preparing", "enabled"]
    assert steps(accepted=frozenset({"modes_proven"})) == ["enabled"]


def test_one_file_for_all_nodes_does_not_let_a_resumed_run_skip_any(tmp_path: Path) -> None:
    """The file says preparing when one of them was restarted: the others still run as before."""
    there, file = nodes(), write_mm2(tmp_path / "mm2.properties")
    there.crashes.add(W3)
    driver = NodeDriver(there)
    accepted = VERSIONS | {"modes_proven"}
    stopped = roll(there.app(tmp_path), driver, Mode.PREPARING, accepted=accepted)
    assert outcomes(stopped)[:2] == [("preparing", N2, "done"), ("preparing", N3, "failed")]
    write_mm2(file, "preparing")
    app = there.app(tmp_path)
    config = parse_worker_config(file.read_text(), source=str(file), group_id="g")
    app = replace(app, target=replace(app.target, worker_configs=(config,)))
    for resume in (True, False):
        request = RollRequest(Mode.PREPARING, accepted=accepted, resume=resume, start_over=not resume)
        prepared = prepare_roll(app, request, driver)
        assert {name for _mode, name in prepared.steps()} == {N1, N3}
    assert roll(app, driver, Mode.PREPARING, resume=True, accepted=accepted).exit_code is ExitCode.OK
    assert set(there.workers.values()) == {"preparing"}


def test_a_file_alone_proves_no_mode_to_verify(tmp_path: Path) -> None:
    there, file = nodes([N1], mode="preparing"), write_mm2(tmp_path / "mm2.properties", "preparing")
    config = parse_worker_config(file.read_text(), source=str(file), group_id="g")
    app = there.app(tmp_path)
    app = replace(app, target=replace(app.target, worker_configs=(config,)))
    [finding] = verify_upgrade(app, Mode.PREPARING).rows
    assert (finding.code, finding.subject) == ("mode_unproven", N1)
    assert "its file says preparing, and no request confirms it" in finding.message
    assert verify_upgrade(app, Mode.PREPARING, accepted=frozenset({"modes_proven"})).exit_code is ExitCode.OK
