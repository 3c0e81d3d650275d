"""Rights as a gate: before the first restart, certain ones forbid it, and what can't be known never does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.acls.rules import acl_of
from eosctl.acls.wanted import gather_wanted
from eosctl.app import App
from eosctl.core.acls.lines import Acl, AclRequest
from eosctl.core.workers.config import parse_worker_config
from eosctl.core.workers.modes import Mode
from eosctl.errors import EosctlError, ExitCode, UnauthorizedError, UnreachableError
from eosctl.upgrade.drivers import DriverResult
from eosctl.upgrade.gate_rows import GatePart
from eosctl.upgrade.plan import plan_upgrade
from eosctl.upgrade.roll.prepare import RollRequest, prepare_roll
from eosctl.upgrade.roll.report import plan_report
from eosctl.upgrade.roll.roll import apply_roll
from eosctl.upgrade.rows import PlanData
from eosctl.upgrade.status import verify_upgrade
from tests.fakes.acls import FakeAclStore
from tests.fakes.config_topic import created
from tests.fakes.rolling import FakeDriver, RollWorld, world

_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required username={} password=p;"
ROLES = ("worker", "producer", "consumer", "admin")
TASK, LEADER = "g-a-0", "connect-cluster-g"


def worker_file(number: int = 1) -> str:
    """A worker whose four clients log in as users that are called after their roles."""
    lines = [f"listeners=http://w{number}:8083", "group.id=g", "bootstrap.servers=memory:1"]
    for prefix, user in zip(("", "producer.", "consumer.", "admin."), ROLES, strict=True):
        lines += [f"{prefix}security.protocol=SASL_PLAINTEXT", f"{prefix}sasl.mechanism=PLAIN",
                  f"{prefix}sasl.jaas.config={_LOGIN.format(user)}"]  # fmt: skip
    return "\n".join(lines) + "\n"


def app_of(there: RollWorld, state: Path, *, files: bool = True) -> App:
    app = there.app(state)
    state.mkdir(exist_ok=True)
    configs = []
    for number in (1, 2):
        path = state / f"w{number}.properties"
        path.write_text(worker_file(number))  # apply reads it anew at each look
        configs.append(parse_worker_config(path.read_text(), source=str(path)))
    return replace(app, target=replace(app.target, worker_configs=tuple(configs if files else ())))


@dataclass
class FileDriver(FakeDriver):
    """Writes the mode into the worker's file, as drivers do."""

    directory: Path = field(default_factory=Path)

    def bring(self, app: App, workers: Sequence[str], mode: Mode) -> DriverResult:
        path = self.directory / f"w{workers[0][8]}.properties"
        path.write_text(f"{path.read_text()}exactly.once.source.support={mode.value}\n")
        return super().bring(app, workers, mode)


def needed(app: App, mode: str = "enabled") -> list[Acl]:
    """One ACL for each right that is needed, nothing more."""
    wanted = gather_wanted(app, AclRequest(every=True, mode=mode), look=True)
    return [acl_of(right, wanted.principals[right.role]) for right in wanted.rights]


def given(there: RollWorld, app: App, *, without: Iterable[tuple[str, str, str]] = (), mode: str = "enabled") -> None:
    """The rights, but for some (principal, operation, name): WRITE goes with DESCRIBE."""
    acls = needed(app, mode)
    there.acls = FakeAclStore(
        acl for acl in acls if (acl.principal, acl.operation, acl.name) not in set(without)
    )  # fmt: skip


def gate(app: App, target: Mode = Mode.ENABLED) -> GatePart:
    report = plan_upgrade(app, target)
    gates = report.data_of(PlanData).gates
    (found,) = [each for each in gates if each.id == "rights_granted"]
    assert report.exit_code is (ExitCode.FINDINGS if found.status == "fail" else ExitCode.OK), gates
    return found


def test_exactly_the_rights_of_the_table_are_enough(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled")
    app = app_of(there, tmp_path)
    given(there, app)
    assert gate(app).status == "pass"
    assert str(gate(app).evidence).endswith(" rights of workers and source connectors are given by ACLs")


@pytest.mark.parametrize(
    ("lacking", "target", "status", "words"),
    [
        (
            ("User:admin", "WRITE", TASK),
            Mode.ENABLED,
            "fail",
            "admin User:admin: no ACL allows WRITE on Transactional",
        ),
        (("User:producer", "WRITE", TASK), Mode.ENABLED, "fail", "producer User:producer: no ACL allows WRITE on"),
        (("User:producer", "WRITE", TASK), Mode.PREPARING, "pass", "are given by ACLs"),
        (("User:worker", "WRITE", LEADER), Mode.ENABLED, "fail", LEADER),
        (("User:worker", "WRITE", LEADER), Mode.PREPARING, "fail", LEADER),
        (("User:worker", "WRITE", LEADER), Mode.DISABLED, "pass", "does not matter"),
        (("User:worker", "DESCRIBE_CONFIGS", "connect-configs"), Mode.ENABLED, "pass", "are given by ACLs"),
    ],
)
def test_a_right_that_is_lacking(
    tmp_path: Path, lacking: tuple[str, str, str], target: Mode, status: str, words: str
) -> None:
    there = world(w1="disabled", w2="disabled")
    app = app_of(there, tmp_path)
    given(there, app, without=[lacking])
    found = gate(app, target)
    assert (found.status, words in str(found.evidence)) == (status, True), found
    assert ("acls check --all" in found.fix) == (status != "pass")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (UnauthorizedError("not authorized: describing ACLs failed"), "not authorized: describing ACLs failed"),
        (UnreachableError("no broker answers"), "no broker answers"),
    ],
)
def test_who_may_not_read_acls_is_told_so_and_not_held_up(tmp_path: Path, error: EosctlError, words: str) -> None:
    there = world(w1="disabled", w2="disabled")
    there.acls = FakeAclStore(refuse=error)
    app = app_of(there, tmp_path)
    assert (gate(app).status, gate(app).evidence) == ("unknown", words)
    prepared = prepare_roll(app, RollRequest(Mode.ENABLED), FileDriver(there, directory=tmp_path))
    assert plan_report(app, prepared).exit_code is ExitCode.OK
    assert apply_roll(app, prepared).exit_code is ExitCode.OK


def test_without_the_workers_files_nobody_knows_the_principals(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled")
    there.acls = FakeAclStore()
    found = gate(app_of(there, tmp_path, files=False))
    assert (found.status, found.evidence) == (
        "unknown",
        "the rights can't be judged: no principal given for role worker",
    )
    assert "-w" in found.fix


def test_a_super_user_needs_no_acl(tmp_path: Path) -> None:
    """Who is one can't be read: a principal that no ACL names may be one, and is not held up."""
    there = world(w1="disabled", w2="disabled")
    app = app_of(there, tmp_path)
    there.acls = FakeAclStore()
    assert gate(app).status == "unknown"
    del there.topics.state.settings["super.users"], there.topics.state.settings["allow.everyone.if.no.acl.found"]
    assert gate(app).status == "fail"


@pytest.mark.parametrize("setting", ["producer.override.sasl.jaas.config", "producer.override.bootstrap.servers"])
def test_a_connector_with_a_login_of_its_own_is_not_judged_by_the_workers(tmp_path: Path, setting: str) -> None:
    there = world(w1="disabled", w2="disabled")
    app = app_of(there, tmp_path)
    given(there, app, without=[("User:producer", "WRITE", TASK)])
    for key, value in created("a", 1, config={setting: "x"}):
        there.keep_config(key, value)
    found = gate(app)
    assert (found.status, found.evidence) == (
        "unknown", f"a logs in with {setting}, so its rights are not judged"
    )  # fmt: skip


def test_an_offsets_topic_that_only_a_worker_can_resolve_is_not_judged(tmp_path: Path) -> None:
    """The gate failed for want of rights on a topic of the name `${file:/run/topics:a}`."""
    there = world(w1="disabled", w2="disabled")
    app = app_of(there, tmp_path)
    for key, value in created("a", 1, config={"offsets.storage.topic": "${file:/run/topics:a}"}):
        there.keep_config(key, value)
    given(there, app)
    found = gate(app)
    assert found.status == "unknown"
    assert str(found.evidence).endswith("which only its worker can resolve; rights on it are not part of this")


def test_apply_restarts_nobody_without_the_rights(tmp_path: Path) -> None:
    """`enabled` came up, and the connector FAILED: only doctor and `acls check` had known."""
    there = world(w1="disabled", w2="disabled")
    app = app_of(there, tmp_path)
    given(there, app, without=[("User:producer", "WRITE", TASK)])
    report = plan_report(app, prepare_roll(app, RollRequest(Mode.ENABLED), FileDriver(there, directory=tmp_path)))
    assert (report.exit_code, [problem.code for problem in report.problems]) == (ExitCode.REFUSED, ["rights_granted"])
    assert there.starts == []


def test_a_right_that_is_taken_away_meanwhile_stops_it_before_the_second_pass(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled")
    app = app_of(there, tmp_path)
    given(there, app)

    def revoke(_url: str) -> None:
        given(there, app, without=[("User:admin", "WRITE", TASK)])

    there.after_start.append(revoke)
    report = apply_roll(
        app, prepare_roll(app, RollRequest(Mode.ENABLED, settle_timeout_s=60.0), FileDriver(there, directory=tmp_path))
    )
    assert report.exit_code is ExitCode.PARTIAL
    assert "no worker may become enabled now: gate rights_granted fails: admin User:admin" in report.problems[0].message
    assert set(there.workers.values()) == {"preparing"}


def test_verify_passes_with_a_warning_where_rights_can_not_be_judged(tmp_path: Path) -> None:
    there = world(w1="enabled", w2="enabled")
    there.acls = FakeAclStore(refuse=UnauthorizedError("not yours to see"))
    report = verify_upgrade(app_of(there, tmp_path), Mode.ENABLED)
    assert (report.exit_code, report.rows) == (ExitCode.OK, [])
    assert [(problem.code, problem.severity) for problem in report.problems] == [("rights_granted", "warning")]
    app = app_of(there, tmp_path)
    given(there, app, without=[("User:admin", "WRITE", TASK)])
    assert [row.code for row in verify_upgrade(app, Mode.ENABLED).rows] == ["rights_granted"]
