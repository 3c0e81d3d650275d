"""`task-counts write` that is cut off or overtaken while ids are fenced: what its report then says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from eosctl.deadline import Event
from eosctl.errors import ExitCode
from eosctl.task_counts.write import WriteRequest, apply_write, plan_write
from tests.fakes.broker import Seen
from tests.fakes.rescue_scene import Scene, stop


@pytest.mark.parametrize(
    ("call", "done", "outcome"),
    [("write", False, "not_written"), ("write", True, "written"), ("read", True, "unconfirmed")],
)
def test_after_ctrl_c_the_rows_so_far_are_reported(scene: Scene, *, call: str, done: bool, outcome: str) -> None:
    """Only the error was left: neither the ids that were fenced, nor whether the record was written, nor its backup."""
    stop(scene)
    plan = plan_write(scene.app(), WriteRequest("c", 5))

    def press_ctrl_c(event: Event) -> None:
        if event.message.startswith("backup: "):
            scene.topics.fail_next(call, KeyboardInterrupt(), done=done)

    report = apply_write(replace(scene.app(), on_event=press_ctrl_c), plan)
    assert (report.exit_code, report.rows[0].outcome) == (ExitCode.INTERRUPTED, outcome)
    assert [problem.code for problem in report.problems] == ["interrupted"]
    assert report.data.fence.summary.counts == {"fenced": 3}
    assert Path(str(report.data.backup)).exists()


def _restarted(scene: Scene) -> None:
    """Somebody has started the connector, and it has its tasks."""
    scene.connect.add("c", {"tasks.max": "2"})


def _reconfigured(scene: Scene) -> None:
    scene.commit(7)


@pytest.mark.parametrize(
    ("happens", "code", "complaint"),
    [(_restarted, "refused", "has 2 tasks"), (_reconfigured, "stale_plan", "changed since the plan was made")],
)
def test_what_changes_while_ids_are_fenced_stops_the_record(
    scene: Scene, happens: Callable[[Scene], None], code: str, complaint: str
) -> None:
    """Fencing many ids takes a while, and a record after a task set that was not seen would hide its ids.

    Only the error was left, and not the ids that were fenced.
    """
    stop(scene)
    plan = plan_write(scene.app(), WriteRequest("c", 0))

    def after_the_last(seen: Seen, answer: bytes) -> bytes:
        if seen.api == "InitProducerId" and scene.brokers.count("InitProducerId") == 3:
            happens(scene)
        return answer

    scene.brokers.tamper = after_the_last
    report = apply_write(scene.app(), plan)
    assert (report.exit_code, report.rows[0].outcome) == (ExitCode.PARTIAL, "not_written")
    assert (report.problems[0].code, complaint in report.problems[0].message) == (code, True)
    assert report.data.fence.summary.counts == {"fenced": 3}
    assert scene.brokers.count("InitProducerId") == 3, "all of them were fenced by then"
    assert scene.records() == []


def test_after_ctrl_c_while_ids_are_fenced_none_counts_as_fenced(scene: Scene) -> None:
    """`fenced_before` was true there, and whoever then wrote with --no-fence left zombies alive."""
    stop(scene)

    def interrupt(event: Event) -> None:
        if event.message == "fencing":
            raise KeyboardInterrupt

    plan = plan_write(scene.app(), WriteRequest("c", 0))
    report = apply_write(replace(scene.app(), on_event=interrupt), plan)
    assert (report.exit_code, report.rows[0].outcome) == (ExitCode.INTERRUPTED, "not_written")
    assert report.data.fenced_before is False
