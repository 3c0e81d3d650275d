"""A scene about transactions, commands that work on it, and where the audit log of the tests lies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Invoke, Outcome
from tests.fakes.transactions import Scene


@pytest.fixture
def run(invoke: Invoke, stage: Scene) -> Any:
    """`eosctl ARGS…` on the scene."""

    def on_stage(*args: str, **more: Any) -> Outcome:
        return invoke(*args, *stage.flags, **{**stage.surroundings, **more})

    return on_stage


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "state" / "eosctl" / "audit.jsonl"
