"""`upgrade status` and `verify`: what the journal adds to what is seen, and what keeps a group from being done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eosctl.core.workers.config import parse_worker_config
from eosctl.core.workers.modes import Mode, UpgradeWorker
from eosctl.errors import ExitCode
from eosctl.upgrade.look import Brought, with_brought
from eosctl.upgrade.status import upgrade_status, verify_upgrade
from tests.fakes.rolling import W1, W2, world
from tests.fakes.world import OFFSETS


@pytest.mark.parametrize(
    ("seen", "brought", "member_id", "mode"),
    [
        (Mode.NOT_ENABLED, Brought(Mode.PREPARING, "m"), "m", Mode.PREPARING),
        (Mode.UNKNOWN, Brought(Mode.ENABLED, "m"), "m", Mode.ENABLED),
        (Mode.NOT_ENABLED, Brought(Mode.PREPARING, "m"), "another", Mode.NOT_ENABLED),
        (Mode.NOT_ENABLED, Brought(Mode.PREPARING, "m"), None, Mode.NOT_ENABLED),
        (Mode.NOT_ENABLED, Brought(Mode.PREPARING, None), None, Mode.NOT_ENABLED),
        (Mode.NOT_ENABLED, None, "m", Mode.NOT_ENABLED),
        (Mode.DISABLED, Brought(Mode.PREPARING, "m"), "m", Mode.DISABLED),
        (Mode.NOT_ENABLED, Brought(Mode.ENABLED, "m"), "m", Mode.NOT_ENABLED),
    ],
)
def test_a_worker_is_in_the_mode_it_was_brought_to_while_it_is_the_same_member(
    seen: Mode, brought: Brought | None, member_id: str | None, mode: Mode
) -> None:
    """A mode changes by a restart only, and a restarted worker is another member; what is proven is never overruled."""
    given = {} if brought is None else {W2: brought}
    (worker,) = with_brought([UpgradeWorker(W2, seen, evidence=("seen",))], given, {W2: member_id})
    assert worker.mode is mode
    assert (len(worker.evidence) == 2) == (mode is not seen)


def test_a_worker_that_does_not_answer_makes_the_status_partial(tmp_path: Path) -> None:
    there = world(w1="disabled", w2="disabled")
    assert upgrade_status(there.app(tmp_path)).exit_code is ExitCode.OK
    there.connect.frozen.add(W2)
    status = upgrade_status(there.app(tmp_path))
    assert (status.exit_code, [problem.code for problem in status.problems]) == (
        ExitCode.PARTIAL,
        ["worker_unreachable"],
    )


def test_a_group_without_workers_is_in_no_mode(tmp_path: Path) -> None:
    """None of them is in another mode, either."""
    report = verify_upgrade(world().app(tmp_path), Mode.DISABLED)
    assert report.exit_code is ExitCode.FINDINGS
    assert "no_workers" in [row.code for row in report.rows]


def test_a_look_in_the_middle_of_a_rebalance_is_repeated(tmp_path: Path) -> None:
    """A task that was about to start made it exit with 3."""
    there = world(w1="enabled", w2="enabled")
    for task in there.connector.tasks.values():
        task.state = "UNASSIGNED"
    there.time.later(4, there.connector.heal)
    assert verify_upgrade(there.app(tmp_path), Mode.ENABLED).exit_code is ExitCode.OK


@pytest.mark.parametrize("named", [(), (W1, W2)])
def test_a_rebalance_that_lasts_hides_the_members_and_is_no_finding(tmp_path: Path, named: tuple[str, ...]) -> None:
    """Two workers were four, each without a mode, and the remedy was to upgrade them to Kafka 3.3; exit 3."""
    there = world(w1="enabled", w2="enabled")
    there.connect.rebalancing = True
    file = parse_worker_config("group.id=g\nlisteners=http://w1:8083\n", source="w1.properties")
    target: dict[str, Any] = {"connect_urls": named, "worker_configs": (file,)}
    report = verify_upgrade(there.app(tmp_path, **target), Mode.ENABLED)
    assert (report.exit_code, report.rows, report.summary.workers) == (ExitCode.PARTIAL, [], 2)
    assert [(each.code, each.unseen) for each in report.problems] == [("group_stable", True)]
    status = upgrade_status(there.app(tmp_path, **target))
    assert (status.exit_code, status.summary.workers) == (ExitCode.PARTIAL, 2)
    del there.topics.topics[OFFSETS]
    report = verify_upgrade(there.app(tmp_path, **target), Mode.ENABLED)
    assert (report.exit_code, [row.code for row in report.rows]) == (ExitCode.FINDINGS, ["offset_topic"])


def test_what_lasts_is_not_taken_for_a_rebalance(tmp_path: Path) -> None:
    there = world(w1="enabled", w2="enabled")
    for task in there.connector.tasks.values():
        task.state = "UNASSIGNED"
    report = verify_upgrade(there.app(tmp_path), Mode.ENABLED)
    assert (report.exit_code, [row.code for row in report.rows]) == (ExitCode.FINDINGS, ["connectors_healthy"])


def test_a_gate_that_fails_keeps_a_group_from_being_done_though_all_modes_are_right(tmp_path: Path) -> None:
    there = world(w1="enabled", w2="enabled")
    assert verify_upgrade(there.app(tmp_path), Mode.ENABLED).exit_code is ExitCode.OK
    there.connector.fail()
    report = verify_upgrade(there.app(tmp_path), Mode.ENABLED)
    assert report.exit_code is ExitCode.FINDINGS
    assert [(row.code, row.subject) for row in report.rows] == [("connectors_healthy", "g")]  # not the cluster's id


def test_a_gate_that_is_accepted_is_said_and_is_no_finding(tmp_path: Path) -> None:
    """`apply` had the option, and `verify` after it failed on the same connector."""
    there = world(w1="enabled", w2="enabled")
    there.connector.fail()
    report = verify_upgrade(there.app(tmp_path), Mode.ENABLED, accepted=frozenset({"connectors_healthy"}))
    assert (report.exit_code, report.rows) == (ExitCode.OK, [])
    [problem] = report.problems
    assert (problem.code, problem.severity) == ("connectors_healthy", "warning")
    assert problem.message.endswith("a task 0 is FAILED; it is accepted as it is (--accept-gate)")


def test_modes_that_nothing_proves_are_taken_only_where_that_is_accepted(tmp_path: Path) -> None:
    there = world(w1="preparing", w2="preparing")
    app, accepted = there.app(tmp_path), frozenset({"modes_proven"})
    assert [row.code for row in verify_upgrade(app, Mode.PREPARING).rows] == ["mode_unproven"] * 2
    assert verify_upgrade(app, Mode.PREPARING, accepted=accepted).exit_code is ExitCode.OK
    wrong = verify_upgrade(app, Mode.ENABLED, accepted=accepted)
    assert {row.code for row in wrong.rows} == {"wrong_mode"}
