"""The systemd unit of docs/how-to/run-the-exporter.md: systemd takes each line of it, and eosctl each option."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Invoke
from tests.fakes.clock import PLENTY_S

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def unit() -> str:
    page = (ROOT / "docs/how-to/run-the-exporter.md").read_text(encoding="utf-8")
    found = re.search(r"```ini\n(.*?)```", page, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_unit_starts_what_there_is(unit: str, invoke: Invoke) -> None:
    started = re.search(r"(?m)^ExecStart=\S+/eosctl (.*)$", unit)
    assert started is not None
    help_text = invoke("exporter", "--help").stdout + invoke("--help-all").stdout
    for word in started[1].split():
        if word.startswith("-"):
            assert re.search(rf"(?m)^\s+.*{re.escape(word)}\b", help_text), word


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_takes_the_unit(unit: str, tmp_path: Path) -> None:
    """It warns of a directive that it does not know, and of a value that is none."""
    path = tmp_path / "eosctl-exporter.service"
    path.write_text(unit.replace("/opt/eosctl/bin/eosctl", sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PLENTY_S,
    )
    assert (done.returncode, [line for line in done.stderr.splitlines() if path.name in line]) == (0, [])
