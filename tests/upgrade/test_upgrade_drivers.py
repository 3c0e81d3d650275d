"""The drivers with real programs on PATH: little scripts that write down how they were called, and act."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from eosctl.app import App
from eosctl.core.workers.modes import Mode
from eosctl.deadline import Clock, Deadline, Event
from eosctl.errors import DeadlineError, EosctlError, InputFileError, NotFoundError, RefusedError, UsageError
from eosctl.target import Target
from eosctl.upgrade.drivers import Driver, SetsAlone
from eosctl.upgrade.drivers.commands import CommandDriver, PrintDriver
from eosctl.upgrade.drivers.kubernetes.driver import KubernetesDriver
from eosctl.upgrade.drivers.kubernetes.workloads import parse_workload
from eosctl.upgrade.drivers.programs import edit_mode, run_program, worker_values
from eosctl.upgrade.drivers.sandboxes import SandboxDriver
from eosctl.upgrade.drivers.systemd import SystemdDriver
from tests.fakes.clock import given_time
from tests.synced_files import SyncedFiles

WORKER = "http://w1.example:8083"
BEFORE = b"# the worker of \xe9tage 2\ngroup.id=g\nexactly.once.source.support=disabled\n"
AFTER = BEFORE.replace(b"disabled", b"preparing")


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    path = tmp_path / "worker 1.properties"
    path.write_bytes(BEFORE)
    path.chmod(0o640)
    return path


Program = Callable[..., None]
RECORD = 'for word in "$@"; do printf "%s\\0" "$word" >> "$CALLS"; done; printf "\\n\\0" >> "$CALLS"\n'


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Puts a shell script on PATH; it records its arguments, then does `then`."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))

    def install(name: str, then: str = "") -> None:
        script = directory / name
        script.write_text(f'#!/bin/sh\nprintf "{name}\\0" >> "$CALLS"\n{RECORD}{then}\n')
        script.chmod(0o755)

    return install


def calls(tmp_path: Path) -> list[list[str]]:
    """What the programs were called with, in order."""
    words = (tmp_path / "calls").read_text().split("\0")
    found: list[list[str]] = [[]]
    for word in words:
        if word == "\n":
            found.append([])
        else:
            found[-1].append(word)
    return found[:-1]


def backups(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.*.bak"))


def test_a_file_is_changed_in_place_with_a_backup_beside_it(properties: Path, synced: SyncedFiles) -> None:
    edited = edit_mode(properties, Mode.PREPARING, Clock())
    assert properties.read_bytes() == AFTER
    assert edited.backup is not None
    assert backups(properties) == [edited.backup]
    assert edited.backup.read_bytes() == BEFORE
    assert [stat.S_IMODE(path.stat().st_mode) for path in (properties, edited.backup)] == [0o640, 0o640]
    assert sorted(path.name for path in properties.parent.iterdir()) == sorted([properties.name, edited.backup.name])
    assert (list(synced.kept(properties)), list(synced.kept(edited.backup))) == ([AFTER], [BEFORE])
    assert edit_mode(properties, Mode.PREPARING, Clock()).backup is None, "there was nothing to change"


def test_a_link_stays_a_link(properties: Path, tmp_path: Path) -> None:
    link = tmp_path / "current.properties"
    link.symlink_to(properties.name)
    edit_mode(link, Mode.PREPARING, Clock())
    assert link.is_symlink()
    assert properties.read_bytes() == AFTER


def test_a_file_that_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"cannot change .*none\.properties: No such file"):
        edit_mode(tmp_path / "none.properties", Mode.ENABLED, Clock())


def test_command_fills_in_words_and_no_shell_reads_them(app: App, tmp_path: Path, program: Program) -> None:
    program("set-mode")
    program("restart")
    driver = CommandDriver(
        restart="restart '{host} {port}' ; echo $HOME", set_config="set-mode --url={url} --mode={mode} {config}",
        properties="/etc/{host}/$(touch x);/it's.properties",
    )  # fmt: skip
    driver.bring(app, [WORKER], Mode.ENABLED)
    assert calls(tmp_path) == [
        ["set-mode", f"--url={WORKER}", "--mode=enabled", "/etc/w1.example/$(touch x);/it's.properties"],
        ["restart", "w1.example 8083", ";", "echo", "$HOME"],
    ]
    assert driver.actions([WORKER], Mode.ENABLED)[1] == "run restart 'w1.example 8083' ';' echo '$HOME'"


@pytest.mark.parametrize(
    "worker",
    [
        "http://-oproxycommand=id:8083", "http://$(id):8083", "http://w1;id:8083", "http://w1`id`:8083", "http://..:8083",
        "http://w1&id:8083", "http://w1:8083/$(id)", "http://w1-:8083", "http://w1.-x:8083", "fd00::1%$(id)/a->b#2", "http://w\u0131:8083",
    ],
)  # fmt: skip
def test_what_a_member_calls_itself_becomes_no_option_and_no_command(worker: str) -> None:
    """Whoever may join the group says what a member's URL is; `ssh {host} restart` ran what it said."""
    for driver in (
        CommandDriver(restart="ssh {host} restart", set_config="set {url}"),
        SystemdDriver("connect", "/etc/connect.properties", "ops@{host}"),
    ):
        with pytest.raises(RefusedError, match="nothing was written"):
            driver.actions([worker], Mode.ENABLED)


def test_what_is_filled_into_a_shown_command_is_one_word() -> None:
    driver = SystemdDriver("connect worker@{host}", "/etc/my connect.properties")
    assert driver.actions([WORKER], Mode.ENABLED)[1] == "systemctl restart 'connect worker@w1.example'"


@pytest.mark.parametrize(
    ("worker", "host"),
    [
        ("http://W1.Example:8083", "W1.Example"),
        ("https://[fd00::1]:8083", "fd00::1"),
        ("http://connect_1:8083/prefix", "connect_1"),
        ("10.0.0.7/a->b#2", "10.0.0.7"),
    ],
)
def test_a_host_is_filled_in_as_it_is_written(worker: str, host: str) -> None:
    assert worker_values(worker)["host"] == host


def test_command_edits_the_file_itself(app: App, program: Program, properties: Path) -> None:
    program("restart", f"grep -q preparing '{properties}'")
    driver = CommandDriver(restart="restart", properties=str(properties))
    acted = driver.bring(app, [WORKER], Mode.PREPARING)
    assert (properties.read_bytes(), acted.backup) == (AFTER, str(backups(properties)[0]))
    assert list(driver.files([WORKER])) == [properties]


def test_systemd_here(app: App, tmp_path: Path, program: Program, properties: Path) -> None:
    program("systemctl", f"grep -q preparing '{properties}'")
    driver = SystemdDriver("connect@{port}", str(properties))
    acted = driver.bring(app, [WORKER], Mode.PREPARING)
    assert calls(tmp_path) == [["systemctl", "restart", "connect@8083"]]
    assert (properties.read_bytes(), acted.backup) == (AFTER, str(backups(properties)[0]))


def test_systemd_over_ssh(app: App, tmp_path: Path, program: Program, properties: Path) -> None:
    """The script in place of ssh hands its last argument to a shell, as sshd does."""
    program("ssh", 'for script; do :; done; exec sh -c "$script"')
    program("systemctl", f"grep -q preparing '{properties}'")
    driver = SystemdDriver("connect", str(properties), "ops@{host}")
    acted = driver.bring(app, [WORKER], Mode.PREPARING)
    assert properties.read_bytes() == AFTER
    (backup,) = backups(properties)
    assert (backup.read_bytes(), acted.backup) == (BEFORE, f"ops@w1.example:{backup}")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (properties, backup)] == [0o640, 0o640]
    called = calls(tmp_path)
    assert {tuple(call[:5]) for call in called if call[0] == "ssh"} == {
        ("ssh", "-o", "BatchMode=yes", "--", "ops@w1.example")
    }
    assert called[-1] == ["systemctl", "restart", "connect"]
    assert driver.bring(app, [WORKER], Mode.PREPARING).backup is None
    assert list(driver.files([WORKER])) == []


@pytest.mark.parametrize("ssh", [None, "ops@{host}"])
def test_systemd_with_sudo(app: App, tmp_path: Path, program: Program, properties: Path, ssh: str | None) -> None:
    """File and unit are root's, and root does not log in by ssh."""
    program("ssh", 'for script; do :; done; exec sh -c "$script"')
    program("sudo", 'test "$1 $2" = "-n --" || exit 1; shift 2; AS=root exec "$@"')
    program("systemctl", f'test "$AS" = root && grep -q preparing "{properties}"')
    driver = SystemdDriver("connect", str(properties), ssh, sudo=True)
    acted = driver.bring(app, [WORKER], Mode.PREPARING)
    (backup,) = backups(properties)
    assert (properties.read_bytes(), backup.read_bytes()) == (AFTER, BEFORE)
    assert acted.backup == (f"ops@w1.example:{backup}" if ssh else str(backup))
    assert {call[0] for call in calls(tmp_path)} == {"sudo", "systemctl", *(["ssh"] if ssh else [])}
    assert driver.actions([WORKER], Mode.PREPARING)[1].startswith("sudo systemctl restart connect")
    program("sudo", "echo 'sudo: a password is required' >&2; exit 1")
    with pytest.raises(RefusedError, match="a password is required; nothing was written"):
        driver.check(app, [WORKER])


@pytest.mark.parametrize("arrives", ["", "head -c 10 |", "LC_ALL=C sed s/2/3/ |"])
def test_what_has_not_arrived_whole_replaces_nothing(
    app: App, program: Program, properties: Path, arrives: str
) -> None:
    """A connection that broke before the new content had come put an empty file in place."""
    comes = f"{arrives} sh -c" if arrives else "exec </dev/null sh -c"
    program("ssh", f'for script; do :; done; case $script in cat*) exec sh -c "$script";; esac; {comes} "$script"')
    with pytest.raises(EosctlError, match="has arrived; it is as it was"):
        SystemdDriver("connect", str(properties), "ops@{host}").set_alone(app, WORKER, Mode.PREPARING)
    assert [path.name for path in properties.parent.glob(f"{properties.name}*")] == [properties.name]
    assert properties.read_bytes() == BEFORE


def test_a_file_that_changes_meanwhile_stays(app: App, program: Program, properties: Path) -> None:
    theirs = BEFORE + b"x=1\n"
    write = f"printf '%s\\n' 'x=1' >> '{properties}'"
    program("ssh", f'for script; do :; done; sh -c "$script" || exit; case $script in cat*) {write};; esac')
    with pytest.raises(EosctlError, match="was changed meanwhile"):
        SystemdDriver("connect", str(properties), "ops@{host}").set_alone(app, WORKER, Mode.PREPARING)
    assert properties.read_bytes() == theirs


@pytest.mark.parametrize("ssh", [None, "ops@{host}"])
@pytest.mark.parametrize("content", [b"", b"exactly.once.source.support=disabled\n"])
def test_a_file_that_is_no_worker_s_is_not_changed(
    app: App, program: Program, properties: Path, ssh: str | None, content: bytes
) -> None:
    """The empty file got the mode as its only line, and that was backed up and kept as the worker's."""
    program("ssh", 'for script; do :; done; exec sh -c "$script"')
    properties.write_bytes(content)
    with pytest.raises(InputFileError, match=r"neither group\.id nor bootstrap\.servers; nothing was written"):
        SystemdDriver("connect", str(properties), ssh).set_alone(app, WORKER, Mode.PREPARING)
    assert properties.read_bytes() == content


OTHER = "http://w2.example:8083"


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda path: SystemdDriver("connect", path), "unit connect is the same for"),
        (lambda path: SystemdDriver("connect@{host}", path), "file .* is the same for"),
        (lambda _path: SystemdDriver("connect", "/none", "{host}"), "w1.example:8083 can't be changed: "),
        (lambda _path: SystemdDriver("connect@{host}", "/none/{host}"), "w1.example:8083 can't be changed: "),
        (lambda _path: CommandDriver("restart connect", "set"), "run restart connect is the same for"),
        (lambda path: CommandDriver("restart {host}", properties=f"{path}-{{host}}"), "there is no file"),
    ],
)
def test_what_is_a_part_of_the_group_only_is_found_before_anything_is_changed(
    app: App, program: Program, properties: Path, make: Callable[[str], Driver], complaint: str
) -> None:
    """The same unit was restarted once for each worker, and the last step of the first pass told that, or none."""
    program("ssh", 'for script; do :; done; exec sh -c "$script"')
    program("systemctl")
    with pytest.raises(RefusedError, match=complaint):
        make(str(properties)).check(app, [WORKER, OTHER])
    assert properties.read_bytes() == BEFORE


def test_a_unit_that_is_not_there_is_found_before_anything_is_changed(
    app: App, tmp_path: Path, program: Program, properties: Path
) -> None:
    program("systemctl", "echo 'No files found for kafka.service.' >&2; exit 1")
    driver = SystemdDriver("kafka", str(properties))
    with pytest.raises(
        RefusedError, match=r"can't be changed: .*No files found for kafka.service\.; nothing was written"
    ):
        driver.check(app, [WORKER])
    program("systemctl")
    driver.check(app, [WORKER])
    assert calls(tmp_path) == [["systemctl", "cat", "--", "kafka"]] * 2


@pytest.mark.parametrize("way", ["here", "ssh", "command"])
def test_the_mode_of_a_worker_that_is_down_is_set_and_it_is_not_started(
    app: App, tmp_path: Path, program: Program, properties: Path, way: str
) -> None:
    """Its next start, whenever that is, must not be in the mode that the others have left."""
    program("ssh", 'for script; do :; done; exec sh -c "$script"')
    program("systemctl")
    program("nothing")
    drivers: dict[str, SetsAlone] = {
        "here": SystemdDriver("connect", str(properties)),
        "ssh": SystemdDriver("connect", str(properties), "ops@{host}"),
        "command": CommandDriver(restart="systemctl restart connect", properties=str(properties)),
    }
    acted = drivers[way].set_alone(app, WORKER, Mode.PREPARING)
    assert (properties.read_bytes(), bool(acted.backup)) == (AFTER, True)
    run_program(app, ["nothing"])
    assert "systemctl" not in {call[0] for call in calls(tmp_path)}


def test_a_program_that_fails_says_its_last_words(app: App, program: Program, properties: Path) -> None:
    program("systemctl", "echo 'Unit not found' >&2; exit 5")
    with pytest.raises(EosctlError, match=r"systemctl restart connect ended with status 5: Unit not found"):
        SystemdDriver("connect", str(properties)).bring(app, [WORKER], Mode.ENABLED)


def test_a_program_that_is_not_there(app: App) -> None:
    with pytest.raises(NotFoundError, match="there is no program no-such-program"):
        CommandDriver("no-such-program", "true").bring(app, [WORKER], Mode.ENABLED)


def test_a_program_that_does_not_end(tmp_path: Path) -> None:
    def bring(timeout_s: float) -> None:
        app = App(target=Target(), deadline=Deadline.after(timeout_s), state_dir=tmp_path)
        with pytest.raises(DeadlineError, match="sleep 600 did not end in time") as caught:
            CommandDriver("sleep 600", "true").bring(app, [WORKER], Mode.ENABLED)
        assert re.findall(r"--[a-z-]+", str(caught.value.hint)) == ["--timeout", "--settle-timeout"], (
            "whichever ended it"
        )

    given_time(bring, first_s=1)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: CommandDriver("restart"), "does not know how the mode is set"),
        (lambda: CommandDriver("restart {pid}", "set"), "--restart-command has {pid}"),
        (lambda: CommandDriver("restart {config}", "set"), "--restart-command has {config}"),
        (lambda: CommandDriver("restart 'x", "set"), "can't be split into words"),
        (lambda: CommandDriver("", "set"), "--restart-command is empty"),
        (lambda: SystemdDriver("{mode}", "f"), "--unit has {mode}"),
        (lambda: KubernetesDriver((parse_workload("pod/x"),)), "--workload pod/x is none of statefulset/NAME"),
    ],
)
def test_what_can_be_known_wrong_is_a_usage_error_before_anything_happens(
    make: Callable[[], Driver], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        make().actions([WORKER], Mode.ENABLED)


def test_print_tells_what_to_do(tmp_path: Path) -> None:
    events: list[Event] = []
    app = App(target=Target(), deadline=Deadline.after(1), state_dir=tmp_path, on_event=events.append)
    PrintDriver().bring(app, [WORKER], Mode.ENABLED)
    assert [event.message for event in events] == [
        f"NOW: set exactly.once.source.support=enabled in the configuration of {WORKER} and restart it"
    ]


def test_no_sandbox_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no sandbox in"):
        SandboxDriver(tmp_path).actions([WORKER], Mode.ENABLED)
