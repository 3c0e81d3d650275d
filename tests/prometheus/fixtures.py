"""Fixtures on Debian's Prometheus: its promtool, and one server for the session."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from eosctl.sandbox.downloads.jars import cache_dir
from tests.fakes.clock import PLENTY_S
from tests.prometheus.programs import NotHereError, Programs, programs
from tests.prometheus.promtool import Promtool
from tests.prometheus.server import Prometheus, running_prometheus


def had_programs() -> Programs:
    """The programs, or a skip with the reason: which fails a full run."""
    try:
        return programs()
    except NotHereError as exc:
        pytest.skip(str(exc))


@pytest.fixture
def promtool(tmp_path: Path) -> Promtool:
    """`promtool("check", "rules", "file", input=…)` runs it in the test's folder."""
    program = had_programs().promtool

    def run(*words: str, input: str | None = None) -> subprocess.CompletedProcess[str]:  # noqa: A002 - subprocess's name
        return subprocess.run(
            [program, *words], cwd=tmp_path, input=input, capture_output=True, text=True, timeout=PLENTY_S,
            env={"GOMAXPROCS": "1"},
        )  # fmt: skip

    return run


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus that scrapes and evaluates all the time; whoever uses it loads targets and rules."""
    folder = tmp_path_factory.mktemp("prometheus") / "server"
    with running_prometheus(had_programs(), folder, cache_dir(os.environ) / "ports") as started:
        yield started
