"""What a rehearsal starts and ends: its own sandbox, and nobody else's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from eosctl.app import App
from eosctl.deadline import Deadline
from eosctl.errors import EosctlError
from eosctl.rehearse.plan import RehearsalPlan, RehearsalRequest, plan_rehearsal
from eosctl.rehearse.stage import RehearsalStage
from eosctl.sandbox.servers import process as state
from eosctl.sandbox.servers.process import StackState
from eosctl.sandbox.stack import Stack
from eosctl.target import Target


def stage_in(folder: Path, plan: RehearsalPlan) -> RehearsalStage:
    return RehearsalStage(App(Target(), Deadline.after(60), folder), plan, os.environ)


def test_a_sandbox_that_somebody_else_started_stays() -> None:
    """Names were those of process ids, which come again: `close` used to bring such a sandbox down and remove it."""
    first, second = (plan_rehearsal(RehearsalRequest(seed=1)) for _ in range(2))
    assert first.sandbox != second.sandbox


def test_only_what_was_started_is_brought_down(tmp_path: Path) -> None:
    stage = stage_in(tmp_path, plan_rehearsal(RehearsalRequest(seed=1)))
    stage.directory.mkdir(parents=True)
    state.save(StackState("other", str(stage.directory), "4.3.1", (), {}, java="java", cache="", cluster_id="c"))
    with pytest.raises(EosctlError, match="there is a sandbox"):
        stage.open()
    stage.close()
    assert Stack.find(stage.directory) is not None


def test_a_stage_that_never_opened_ends_nothing(tmp_path: Path) -> None:
    stage = stage_in(tmp_path, plan_rehearsal(RehearsalRequest(seed=1)))
    stage.directory.mkdir(parents=True)
    state.save(StackState("other", str(stage.directory), "4.3.1", (), {}, java="java", cache="", cluster_id="c"))
    stage.close()
    assert Stack.find(stage.directory) is not None
