"""`eosctl watch` on a real group: an incident appears with its command, which heals it; then all is calm."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from tests.gameday.ground import Ground
from tests.gameday.test_topics_live import hanging_transaction
from tests.sandbox_fixtures import PATIENCE_S

pytestmark = pytest.mark.live


def watch(ground: Ground, *more: str) -> subprocess.Popen[str]:
    where = ["-b", ground.stack.bootstrap_servers, "-g", ground.group, "-u", ground.urls[0], "--interval", "1s"]
    return subprocess.Popen(
        [sys.executable, "-m", "eosctl", "watch", *where, *more], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "XDG_STATE_HOME": str(ground.folder)},
    )  # fmt: skip


def row_of(started: subprocess.Popen[str], change: str, subject: str) -> dict[str, Any]:
    """The next row that says so."""
    assert started.stdout is not None
    for line in started.stdout:
        row = dict(json.loads(line))
        if (row["change"], row["code"], row["subject"]) == (change, "hanging_transaction", subject):
            return row
    raise AssertionError(f"{subject} never {change}")


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")  # kafka-python, when imported
def test_a_hanging_transaction_comes_with_its_command_and_goes(ground: Ground, unique: str) -> None:
    with watch(ground, "-o", "ndjson") as started:
        try:
            with hanging_transaction(ground, unique):
                row = row_of(started, "appeared", f"{unique}-0")
                assert row["severity"] == "error"
                assert row["source"] in ("hanging", "doctor"), "whichever looks first"
                ground.paste(row["command"])
                row_of(started, "gone", f"{unique}-0")
        finally:
            started.send_signal(signal.SIGTERM)
        assert started.wait(PATIENCE_S) == 130
    with watch(ground, "--until", "calm", "--for", "2s", "--timeout", "2m", "-o", "json") as waiting:
        out, _err = waiting.communicate(timeout=2 * PATIENCE_S)
    assert waiting.returncode == 0, out
    document = json.loads(out)
    assert document["data"]["summary"]["state"] == "calm"
    assert document["data"]["summary"]["for_ms"] >= 2_000
