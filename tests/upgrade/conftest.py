"""What the ways of restarting workers are tried with: a kubectl that keeps its objects in a folder, and an App."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from eosctl.app import App
from eosctl.deadline import Deadline
from eosctl.target import Target
from tests.fakes.clock import PLENTY_S, FakeTime
from tests.fakes.kubectl import Cluster


@pytest.fixture
def app(tmp_path: Path) -> App:
    """Of no cluster: drivers take its deadline and its folder. What they wait for happens between two looks."""
    clock = FakeTime().clock()
    return App(target=Target(), clock=clock, deadline=Deadline.after(PLENTY_S, clock), state_dir=tmp_path)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A kubectl on PATH, and what it keeps."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
    found = Cluster(tmp_path / "cluster")
    with found.install(directory):
        yield found
